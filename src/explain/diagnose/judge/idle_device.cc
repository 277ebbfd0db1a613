// idle-device: a command that does not train holds a device and runs next to nothing on it.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"

namespace fullbore::diagnose {

using record::Metric;

std::optional<Finding> JudgeIdleDevice(const View& view, Diagnosis& /*diagnosis*/) {
  if (view.HasSteps()) return std::nullopt;
  const int64_t lasted_ns = view.end_ns() - view.begin_ns();
  const auto utilization = view.Mean(Metric::kGpuUtilization);
  if (!utilization || *utilization >= kNothingRuns || lasted_ns <= kIdleForNs) return std::nullopt;
  if (!view.Has(Metric::kGpuMemoryUsed)) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = Severity::kWarning;
  finding.share = 1;
  finding.title = fmt::format("A GPU was held for {} and ran next to nothing.", FormatDuration(lasted_ns));
  finding.fix = {"release it while preparing or waiting: split the job, or ask for the GPU later"};
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation", utilization);
  return finding;
}

}  // namespace fullbore::diagnose
