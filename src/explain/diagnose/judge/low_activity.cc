// low-activity: utilisation makes the device look busy while most of the chip sleeps.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/program.h"

namespace fullbore::diagnose {

using record::Metric;

std::optional<Finding> JudgeLowActivity(const View& view, Diagnosis& diagnosis) {
  if (!view.has_gpu()) return std::nullopt;
  if (!view.Has(Metric::kGpuSmActive)) {
    diagnosis.not_judged.push_back(
        {"SM and tensor-core activity", "this GPU or driver offers no GPM metrics", "a Hopper or newer GPU"});
  }
  const auto utilization = view.Mean(Metric::kGpuUtilization), sm = view.Mean(Metric::kGpuSmActive);
  if (!utilization || !sm || *utilization < kUtilizationHigh || *sm >= kSmActiveLow || *sm < kNothingRuns)
    return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = Severity::kWarning;
  finding.share = *utilization - *sm;
  finding.title = fmt::format(
      "GPU utilisation says {}, yet on average only {} of its multiprocessors work: utilisation means \"some "
      "kernel ran\".",
      FormatPercent(*utilization), FormatPercent(*sm));
  finding.fix = {"more work per kernel: a larger batch",
                 "look for many short kernels in a trace of a few steps: fullbore explain TRACE"};
  const Words compile = ToCompile(view.ranks().empty() ? Program{} : ProgramOf(*view.lead().info));
  if (!compile.fix.empty()) finding.fix.push_back(compile.fix);
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation", *utilization);
  evidence.FromMetric(Metric::kGpuSmActive, "multiprocessors active", *sm);
  evidence.FromMetric(Metric::kGpuSmOccupancy, "occupancy of the multiprocessors",
                      view.Mean(Metric::kGpuSmOccupancy));
  return finding;
}

}  // namespace fullbore::diagnose
