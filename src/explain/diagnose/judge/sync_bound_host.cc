#include "explain/diagnose/judge/sync_bound_host.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"

namespace fullbore::diagnose {

using record::Share;

namespace {

// A wait at every step, or nearly: one in a hundred, to print, lets the host run ahead in between.
constexpr double kMostSteps = 0.5;
// The wait is for the step's own work: where it is less of the time than what the host does, it hides only a part.
constexpr double kPartThatHides = 0.5;

bool IsJax(const View& view) { return view.Fact("framework") == "jax"; }

double StepsThatWait(const RankView& rank) {
  if (rank.steady.empty()) return 0;
  const auto waits = std::ranges::count_if(rank.steady, [](const record::Step* step) {
    return static_cast<double>(step->share_ns[Index(Share::kSync)]) >
           kOtherInStep * static_cast<double>(step->wall_ns);
  });
  return static_cast<double>(waits) / static_cast<double>(rank.steady.size());
}

}  // namespace

bool IsWaitForComputation(const View& view, Share share) {
  if (share != Share::kSync || view.lead().info->device_activity) return false;
  return IsJax(view) || view.Mean(record::Metric::kGpuUtilization).value_or(0) >= kDeviceBusy;
}

std::optional<Finding> SyncSeenFromHost(const View& view) {
  const RankView& rank = view.lead();
  if (!IsJax(view) || rank.info->device_activity || StepsThatWait(rank) < kMostSteps) return std::nullopt;
  const double waits = rank.Ratio(Share::kSync);
  const double compiles = rank.Ratio(record::HostOther::kCompilation);
  // What the host does itself, the launch of the step included, would pass while the step before computes.
  const double host = 1 - waits - compiles;
  const double share = std::min(host, waits);
  const auto severity = SeverityOf(share, kHostOther, rank.steps);
  if (!severity) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = *severity;
  finding.cause = "each-step";
  finding.share = share;
  finding.title = fmt::format(
      "The device idles {} of the time: the loop waits for the result of each step before it prepares the "
      "next.",
      FormatPercent(share));
  finding.fix = {
      "keep the loss on the device and read it every hundred steps: float(loss), print, np.asarray, "
      "block_until_ready and jax.device_get wait for the step, jax.jit's calls do not",
      "or read the loss of the step before, once the next one is launched"};
  finding.where = view.HottestLines(Share::kSync);
  finding.speedup = RemovalOf(share, kPartThatHides);
  finding.method =
      "what the host does while the device idles passes while the device computes, half of it at least";
  if (host <= waits) finding.supersedes = {{"input-bound", "own-iterator"}, {"host-other", ""}};
  evidence.FromHook("waiting for the step's result", waits, "ratio");
  evidence.FromHook("steps that wait", StepsThatWait(rank), "ratio");
  evidence.FromHook("the host's own work between two waits", host, "ratio");
  PointAtWorstStep(rank, Share::kSync, finding);
  return finding;
}

}  // namespace fullbore::diagnose
