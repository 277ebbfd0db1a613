// low-activity, hang and idle-device: a device that looks busy and is not, or is not used at
// all.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

constexpr int64_t kIdleForNs =
    300 * kNsPerSecond;  // "device held, no kernels": start-up takes a minute or two
constexpr int64_t kHangForNs = 120 * kNsPerSecond;

void JudgeLowActivity(const View& view, Diagnosis& diagnosis) {
  const auto utilization = view.Mean(Metric::kGpuUtilization), sm = view.Mean(Metric::kGpuSmActive);
  if (!utilization || !sm || *utilization < kUtilizationHigh || *sm >= kSmActiveLow || *sm < kNothingRuns)
    return;
  Finding finding;
  finding.id = "low-activity";
  finding.severity = Severity::kWarning;
  finding.share = *utilization - *sm;
  finding.title = fmt::format(
      "GPU utilisation says {}, yet on average only {} of its multiprocessors work: utilisation means \"some "
      "kernel ran\".",
      FormatPercent(*utilization), FormatPercent(*sm));
  finding.fix = {"more work a kernel: a larger batch, torch.compile to fuse small kernels",
                 "look at a trace of some steps for many short kernels: fullbore explain TRACE"};
  finding.evidence.push_back({"GPU utilisation", *utilization, "ratio", "nvml", "gpu_utilization", {}, {}});
  finding.evidence.push_back({"multiprocessors active", *sm, "ratio", "nvml", "gpu_sm_active", {}, {}});
  if (const auto occupancy = view.Mean(Metric::kGpuSmOccupancy)) {
    finding.evidence.push_back(
        {"occupancy of the multiprocessors", *occupancy, "ratio", "nvml", "gpu_sm_occupancy", {}, {}});
  }
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeActivity(const View& view, Diagnosis& diagnosis) {
  if (!view.has_gpu()) return;
  if (!view.Has(Metric::kGpuSmActive)) {
    diagnosis.not_judged.push_back(
        {"SM and tensor-core activity", "this GPU or driver offers no GPM metrics", "a Hopper or newer GPU"});
  }
  JudgeLowActivity(view, diagnosis);
  const auto utilization = view.Mean(Metric::kGpuUtilization), sm = view.Mean(Metric::kGpuSmActive);
  const int64_t lasted_ns = view.end_ns() - view.begin_ns();
  const int64_t since_step_ns = view.HasSteps() ? view.stage().end_ns - view.lead().end_ns : lasted_ns;
  if (utilization && sm && view.HasSteps() && since_step_ns > kHangForNs) {
    const auto last_utilization = view.Last(Metric::kGpuUtilization),
               last_sm = view.Last(Metric::kGpuSmActive);
    if (last_utilization && last_sm && *last_utilization >= kUtilizationHigh && *last_sm < kNothingRuns) {
      Finding finding;
      finding.id = "hang";
      finding.severity = Severity::kCritical;
      finding.share = 1;
      finding.title = fmt::format(
          "No step for {}, while a kernel spins on the GPU without working: a collective waits for a rank.",
          FormatDuration(since_step_ns));
      finding.fix = {
          "find the rank that is missing: py-spy dump on each rank; for the next time, the flight recorder "
          "(TORCH_FR_BUFFER_SIZE, before PyTorch 2.8 TORCH_NCCL_TRACE_BUFFER_SIZE)"};
      finding.evidence.push_back(
          {"GPU utilisation", *last_utilization, "ratio", "nvml", "gpu_utilization", {}, {}});
      finding.evidence.push_back(
          {"multiprocessors active", *last_sm, "ratio", "nvml", "gpu_sm_active", {}, {}});
      diagnosis.findings.push_back(std::move(finding));
    }
  }
  const auto memory = view.Max(Metric::kGpuMemoryUsed);
  if (utilization && *utilization < kNothingRuns && memory && lasted_ns > kIdleForNs && !view.HasSteps()) {
    Finding finding;
    finding.id = "idle-device";
    finding.severity = Severity::kWarning;
    finding.share = 1;
    finding.title = fmt::format("A GPU was held for {} and ran next to nothing.", FormatDuration(lasted_ns));
    finding.fix = {"release it while preparing or waiting: split the job, or ask for the GPU later"};
    finding.evidence.push_back({"GPU utilisation", *utilization, "ratio", "nvml", "gpu_utilization", {}, {}});
    diagnosis.findings.push_back(std::move(finding));
  }
}

}  // namespace fullbore::diagnose
