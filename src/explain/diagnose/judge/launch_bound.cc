// launch-bound: the device waits for the host's launches. Exact where device activity was recorded, else
// estimated from NVML's utilisation and the training thread's phases.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/device_replay.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/program.h"

namespace fullbore::diagnose {

using record::Metric;
using record::Share;

namespace {

const std::vector<std::string>& FewerLaunches() {
  static const std::vector<std::string> advice = {
      "a larger batch, where memory and accuracy allow: the same launches do more work",
      "move per-step Python work (metrics, logging, list building) out of the loop"};
  return advice;
}

// The device waits for the host's next launch, or between kernels that were already queued: many small
// kernels cost both.
std::optional<Finding> FromTrace(const View& view) {
  const RankView& rank = view.lead();
  const record::RankInfo& info = *rank.info;
  const double launch = rank.Ratio(Share::kLaunch), gap = rank.Ratio(Share::kGap);
  const bool gaps = gap > launch;
  const double share = gaps ? gap : launch;
  const auto severity = SeverityOf(share, kLaunch, Observations(rank));
  if (!severity) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.cause = gaps ? "gaps" : "";
  finding.severity = *severity;
  finding.share = share;
  finding.title =
      gaps ? fmt::format("The device idles {} of the time between kernels that were already queued.",
                         FormatPercent(share))
           : fmt::format("The device idles {} of the time, waiting for the host to launch the next kernel.",
                         FormatPercent(share));
  evidence.FromTrace(gaps ? "idle between queued kernels" : "idle until the next launch", share, "ratio");
  if (info.kernels && info.compute_ns && *info.kernels > 0) {
    const double mean = static_cast<double>(*info.compute_ns) / static_cast<double>(*info.kernels);
    evidence.FromTrace("mean time of a kernel", mean / 1e3, "us");
    evidence.FromTrace("kernels", static_cast<double>(*info.kernels), "count");
    if (mean < kShortKernelNs && !gaps) {
      finding.cause = "small-kernels";
      finding.title = fmt::format(
          "Kernels are too short to hide their launches ({} on average): the device idles {} of the time, "
          "waiting for the next launch.",
          FormatDuration(static_cast<int64_t>(mean)), FormatPercent(share));
    }
  }
  if (info.tables && info.tables->launches && info.tables->launches->count > 0) {
    const record::LaunchStats& launches = *info.tables->launches;
    const auto count = static_cast<double>(launches.count);
    evidence.FromTrace("launched when the device had run dry", static_cast<double>(launches.late) / count,
                       "ratio");
    evidence.FromTrace("kernels shorter than the call that launched them",
                       static_cast<double>(launches.short_kernels) / count, "ratio");
    evidence.FromTrace("host time of a launch, median", launches.call_ns.Quantile(0.5) / 1e3, "us");
  }
  finding.fix = FewerLaunches();
  AdviseBest(rank, {"graphs", "compile", "fused-optimizer"}, finding);
  finding.where = view.HottestLines(Share::kLaunch);
  PointAtWorstStep(rank, gaps ? Share::kGap : Share::kLaunch, finding);
  return finding;
}

// Without device activity: the GPU idles although the training thread neither waits for data nor does
// anything besides training.
std::optional<Finding> FromUtilization(const View& view) {
  const auto utilization = view.Mean(Metric::kGpuUtilization);
  const RankView& rank = view.lead();
  if (!utilization || *utilization >= kDeviceBusy) return std::nullopt;
  const double elsewhere =
      rank.Ratio(Share::kDataWait) + rank.Ratio(Share::kHostOther) + rank.Ratio(Share::kCommExposed);
  const double idle = 1 - *utilization - elsewhere;
  const auto severity = SeverityOf(idle, kLaunch, rank.steps);
  if (!severity) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = *severity;
  finding.share = idle;
  const auto trainer = view.Mean(Metric::kProcessCpu, {{"role", "trainer"}});
  finding.title = fmt::format(
      "The GPU idles {} of the time while the training thread runs code: the code does not keep it fed.",
      FormatPercent(idle));
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation", *utilization);
  evidence.FromMetric(Metric::kProcessCpu, "cores the trainer uses", trainer);
  if (view.cores() > 0) evidence.FromMachine("cores", view.cores(), "cores");
  const Program program = ProgramOf(*rank.info);
  for (Words words : {ToCompile(program), ToUseGraphs(program), ToFuseTheOptimizer(program)}) {
    if (!words.fix.empty()) finding.fix.push_back(std::move(words.fix));
  }
  finding.fix.insert(finding.fix.end(), FewerLaunches().begin(), FewerLaunches().end());
  if (trainer && view.cores() >= 2 && *trainer < view.cores() / 2) {
    finding.fix.insert(finding.fix.begin(),
                       fmt::format("one thread does the host's work while {} of {} cores idle: move some of "
                                   "it to others (loader workers, threads), or reduce it",
                                   FormatCount(view.cores() - *trainer), FormatCount(view.cores())));
  }
  finding.where = view.HottestLines(Share::kForward);
  finding.speedup = RemovalOf(idle, 0.3);
  finding.method = "the GPU's idle time that no other cause explains removed; at the low end, 30 % of it";
  return finding;
}

}  // namespace

std::optional<Finding> JudgeLaunchBound(const View& view, Diagnosis& diagnosis) {
  const RankView& rank = view.lead();
  if (!rank.info->device_activity) {
    diagnosis.not_judged.push_back(
        {kDeviceNotSeen, "no device activity was recorded",
         view.has_gpu() ? "a PyTorch-profiler trace of a few steps: fullbore explain TRACE" : "a GPU"});
    return FromUtilization(view);
  }
  return FromTrace(view);
}

}  // namespace fullbore::diagnose
