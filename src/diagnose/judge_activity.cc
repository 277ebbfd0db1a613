// low-activity, no-tensor-cores, hang and idle-device: a device that looks busy and is not, or is not used at
// all.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "diagnose/judge.h"

namespace fullbore::diagnose {

namespace {

constexpr int64_t kIdleForNs =
    300 * kNsPerSecond;  // "device held, no kernels": start-up takes a minute or two
constexpr int64_t kHangForNs = 120 * kNsPerSecond;

void JudgeLowActivity(const View& view, Diagnosis& diagnosis) {
  const auto utilization = view.Mean("gpu_utilization"), sm = view.Mean("gpu_sm_active");
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
  if (const auto occupancy = view.Mean("gpu_sm_occupancy")) {
    finding.evidence.push_back(
        {"occupancy of the multiprocessors", *occupancy, "ratio", "nvml", "gpu_sm_occupancy", {}, {}});
  }
  diagnosis.findings.push_back(std::move(finding));
}

// The gain of bf16 over fp32 for a step bound by matrix multiplication: practitioners measured about 1.7 on a
// T4 and more on newer devices; a step partly bound by memory gains the halved bytes at best.
constexpr Speedup kHalfPrecisionGain = {1.5, 1.1, 2.5};

void JudgeTensorCores(const View& view, Diagnosis& diagnosis) {
  const auto tensor = view.Mean("gpu_tensor_active"), sm = view.Mean("gpu_sm_active");
  if (!tensor || !sm) return;
  if (*tensor >= kTensorActiveNone || *sm < kDeviceStarved) return;
  Finding finding;
  finding.id = "no-tensor-cores";
  finding.severity = Severity::kWarning;
  finding.share = *sm;
  finding.title =
      fmt::format("The tensor cores idle ({} active) while the multiprocessors work {} of the time.",
                  FormatPercent(*tensor), FormatPercent(*sm));
  finding.change = "torch.autocast(\"cuda\", torch.bfloat16)";
  finding.fix = {"run the forward pass under torch.autocast(\"cuda\", torch.bfloat16)",
                 "or at least allow TF32: torch.set_float32_matmul_precision(\"high\")",
                 "channels_last for convolutions; sizes that are multiples of 8"};
  finding.evidence.push_back({"tensor cores active", *tensor, "ratio", "nvml", "gpu_tensor_active", {}, {}});
  finding.evidence.push_back({"multiprocessors active", *sm, "ratio", "nvml", "gpu_sm_active", {}, {}});
  // Only the part of the step that the device computes gets faster.
  const double busy = std::min(1.0, view.Mean("gpu_utilization").value_or(*sm));
  const auto whole = [&](double gain) { return 1 / (1 - busy + busy / gain); };
  finding.speedup = {whole(kHalfPrecisionGain.expected), whole(kHalfPrecisionGain.low),
                     whole(kHalfPrecisionGain.high)};
  finding.method = "the device's busy time divided by the usual gain of bf16 over fp32 (1.1 to 2.5)";
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeActivity(const View& view, Diagnosis& diagnosis) {
  if (!view.has_gpu()) return;
  if (!view.Has("gpu_sm_active")) {
    diagnosis.not_judged.push_back(
        {"SM and tensor-core activity", "this GPU or driver offers no GPM metrics", "a Hopper or newer GPU"});
  }
  JudgeLowActivity(view, diagnosis);
  JudgeTensorCores(view, diagnosis);
  const auto utilization = view.Mean("gpu_utilization"), sm = view.Mean("gpu_sm_active");
  const int64_t lasted_ns = view.end_ns() - view.begin_ns();
  const int64_t since_step_ns = view.HasSteps() ? view.stage().end_ns - view.lead().end_ns : lasted_ns;
  if (utilization && sm && view.HasSteps() && since_step_ns > kHangForNs) {
    const auto last_utilization = view.Last("gpu_utilization"), last_sm = view.Last("gpu_sm_active");
    if (last_utilization && last_sm && *last_utilization >= kUtilizationHigh && *last_sm < kNothingRuns) {
      Finding finding;
      finding.id = "hang";
      finding.severity = Severity::kCritical;
      finding.share = 1;
      finding.title = fmt::format(
          "No step for {}, while a kernel spins on the GPU without working: a collective waits for a rank.",
          FormatDuration(since_step_ns));
      finding.fix = {
          "find the rank that is missing: TORCH_NCCL_TRACE_BUFFER_SIZE and the flight recorder, py-spy dump "
          "on each rank"};
      finding.evidence.push_back(
          {"GPU utilisation", *last_utilization, "ratio", "nvml", "gpu_utilization", {}, {}});
      finding.evidence.push_back(
          {"multiprocessors active", *last_sm, "ratio", "nvml", "gpu_sm_active", {}, {}});
      diagnosis.findings.push_back(std::move(finding));
    }
  }
  const auto memory = view.Max("gpu_memory_used");
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
