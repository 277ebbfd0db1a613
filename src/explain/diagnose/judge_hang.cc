// hang: no step for long, and nothing is computed: a kernel spins on the device without doing any work, as a
// collective that waits for a rank does, or neither the device nor the command's processes do anything.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

// What keeps everything waiting, in words; empty where something is computed, or nothing is known.
std::string WhatWaits(const View& view) {
  const auto utilization = view.MeanAfterSteps(Metric::kGpuUtilization),
             sm = view.MeanAfterSteps(Metric::kGpuSmActive), cores = view.CoresAfterSteps();
  if (utilization && sm && *utilization >= kUtilizationHigh && *sm < kNothingRuns)
    return "while a kernel spins on the GPU doing no work: a collective is waiting for a rank";
  if (!cores || *cores >= kNothingComputes * static_cast<double>(view.ranks().size()) ||
      utilization.value_or(0) >= kNothingRuns)
    return "";
  return view.ranks().size() > 1 ? "and nothing computes: the ranks wait for one that does not come"
                                 : "and nothing computes: the training waits for what does not come";
}

}  // namespace

std::optional<Finding> JudgeHang(const View& view, Diagnosis& /*diagnosis*/) {
  // Only what happened after the last step counts: before that there was work. What ends well did not hang.
  const int64_t since_step_ns = view.stage().end_ns - view.end_ns();
  if (!view.HasSteps() || since_step_ns <= kHangForNs || view.stage().exit_status == 0) return std::nullopt;
  const std::string what = WhatWaits(view);
  if (what.empty()) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = Severity::kCritical;
  finding.share = 1;
  finding.stands_still = true;
  finding.title = fmt::format("No step for {}, {}.", FormatDuration(since_step_ns), what);
  finding.fix = {
      view.ranks().size() > 1
          ? "find the missing rank: py-spy dump on each rank; for next time, turn on the flight recorder "
            "(TORCH_FR_BUFFER_SIZE, before PyTorch 2.8 TORCH_NCCL_TRACE_BUFFER_SIZE)"
          : "find what it waits for: py-spy dump --pid PID of the training process and of its loader's "
            "workers"};
  evidence.FromMetric(Metric::kGpuUtilization, "GPU utilisation since the last step",
                      view.MeanAfterSteps(Metric::kGpuUtilization));
  evidence.FromMetric(Metric::kGpuSmActive, "multiprocessors active since then",
                      view.MeanAfterSteps(Metric::kGpuSmActive));
  evidence.FromMetric(Metric::kProcessCpu, "cores that the command uses since then", view.CoresAfterSteps());
  return finding;
}

}  // namespace fullbore::diagnose
