// hang: since the last step a kernel has been spinning on the device without doing any work: a collective is
// waiting for a rank that never arrives.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;

std::optional<Finding> JudgeHang(const View& view, Diagnosis& /*diagnosis*/) {
  const int64_t since_step_ns = view.stage().end_ns - view.end_ns();
  if (since_step_ns <= kHangForNs) return std::nullopt;
  // Only what the device did after the last step counts: before that it was really busy.
  const auto utilization = view.MeanAfterSteps(Metric::kGpuUtilization),
             sm = view.MeanAfterSteps(Metric::kGpuSmActive);
  if (!utilization || !sm || *utilization < kUtilizationHigh || *sm >= kNothingRuns) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = Severity::kCritical;
  finding.share = 1;
  finding.title = fmt::format(
      "No step for {}, while a kernel spins on the GPU doing no work: a collective is waiting for a rank.",
      FormatDuration(since_step_ns));
  finding.fix = {
      "find the missing rank: py-spy dump on each rank; for next time, turn on the flight recorder "
      "(TORCH_FR_BUFFER_SIZE, before PyTorch 2.8 TORCH_NCCL_TRACE_BUFFER_SIZE)"};
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation", utilization);
  evidence.FromMetric(Metric::kGpuSmActive, "multiprocessors active", sm);
  return finding;
}

}  // namespace fullbore::diagnose
