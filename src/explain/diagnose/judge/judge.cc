#include "explain/diagnose/judge/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/advice.h"

namespace fullbore::diagnose {

using fitness::Conclusion;
using record::Metric;

namespace {

constexpr std::optional<Conclusion> kNothing,
    kAnything = Conclusion::kAnything, kIdleTime = Conclusion::kIdleTime, kHealthy = Conclusion::kHealthy;

constexpr FindingRow kFindings[] = {
#define FINDING(id, judge, when, rests, concludes, haste) \
  {id, judge, When::when, Rests::rests, concludes, Haste::haste},
#include "explain/diagnose/findings.inc"
#undef FINDING
};

}  // namespace

std::span<const FindingRow> AllFindings() { return kFindings; }

void DropForbiddenGains(Diagnosis& diagnosis) {
  if (!diagnosis.fitness.Forbids(Conclusion::kGains)) return;
  for (Finding& finding : diagnosis.findings) DropGain(finding);
}

std::optional<Severity> SeverityOf(double share, const Levels& levels, int64_t steps) {
  if (share < levels.warning || steps < kStepsForWarning) return std::nullopt;
  return share >= levels.critical && steps >= kStepsForCritical ? Severity::kCritical : Severity::kWarning;
}

int64_t Observations(const RankView& rank) {
  if (rank.steps > 1 || !rank.info->device_activity) return rank.steps;
  // Many kernels make a share certain, but not typical: one window alone is never critical.
  return std::min<int64_t>(rank.info->kernels.value_or(rank.steps), kStepsForCritical - 1);
}

void PointAtWorstStep(const RankView& rank, record::Share share, Finding& finding) {
  const auto worst = std::max_element(
      rank.steady.begin(), rank.steady.end(),
      [&](const auto* a, const auto* b) { return a->share_ns[Index(share)] < b->share_ns[Index(share)]; });
  if (worst == rank.steady.end() || finding.evidence.empty()) return;
  finding.evidence.front().begin_ns = (*worst)->end_ns - (*worst)->wall_ns;
  finding.evidence.front().end_ns = (*worst)->end_ns;
}

Speedup RemovalOf(double share, double least) {
  const auto without = [](double part) { return 1 / (1 - std::min(part, 0.99)); };
  return {without(share * (1 + least) / 2), without(share * least), without(share)};
}

// The loader's sums cover the whole run, and a slow start may be among the warm-up steps. So the ratio of
// such waits to all waits is applied to the waits of the steady state. The run's first step, which waits for
// the first epoch, is not a restart.
namespace {

double PartOfWaits(const RankView& rank, int64_t part_ns) {
  int64_t waited_ns = rank.share_ns[Index(record::Share::kDataWait)];
  for (const record::Step& step : rank.info->steps) {
    if (step.index > 0 && step.index < rank.warmup_steps)
      waited_ns += step.share_ns[Index(record::Share::kDataWait)];
  }
  if (waited_ns == 0) return 0;
  const double part = static_cast<double>(part_ns) / static_cast<double>(waited_ns);
  return rank.Ratio(record::Share::kDataWait) * std::min(part, 1.0);
}

}  // namespace

double EpochStartShare(const RankView& rank, const record::Loader& loader) {
  return PartOfWaits(rank, loader.restart_wait_ns);
}

double DrawShare(const RankView& rank, const record::Loader& loader) {
  return PartOfWaits(rank, std::min(loader.draw_ns, loader.restart_wait_ns));
}

std::optional<std::string> DeviceAgainstCpu(const View& view) {
  const auto device = view.Mean(Metric::kGpuUtilization), cpu = view.Mean(Metric::kCpuUtilization);
  if (!device || !cpu || *device >= kDeviceStarved) return std::nullopt;
  const std::string both = fmt::format("the GPU is busy {} of the time and the CPU {}",
                                       FormatPercent(*device), FormatPercent(*cpu));
  if (*cpu >= kCpuSaturated)
    return both + ": loading or preprocessing is the narrow pipe, make it cheaper or give it more cores";
  if (*cpu < kCpuIdle)
    return both + ": the code is serial, parallelise it (worker processes, threads, batches)";
  return std::nullopt;
}

const Finding* FindingWithId(const Diagnosis& diagnosis, const std::string& id) {
  const auto at = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                               [&](const Finding& finding) { return finding.id == id; });
  return at == diagnosis.findings.end() ? nullptr : &*at;
}

}  // namespace fullbore::diagnose
