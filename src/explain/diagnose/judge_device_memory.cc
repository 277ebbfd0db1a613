// memory-pressure and small-batch: how full the device's memory is, and whether a larger batch is worth
// trying. And throttle, the device held back by heat or power.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/judge.h"

namespace fullbore::diagnose {

using record::Metric;

namespace {

constexpr double kOccupancyLow = 0.25;  // of the warps that fit: latency of memory is no longer hidden

void JudgeFull(const View& view, double filled, Diagnosis& diagnosis) {
  if (filled < kDeviceMemoryWarning) return;
  Finding finding;
  finding.id = "memory-pressure";
  finding.severity = filled >= kDeviceMemoryCritical ? Severity::kCritical : Severity::kWarning;
  finding.title =
      fmt::format("Device memory is {} full: the next larger input may fail.", FormatPercent(filled));
  finding.fix = {
      "PYTORCH_ALLOC_CONF=expandable_segments:True against fragmentation (before PyTorch 2.10: "
      "PYTORCH_CUDA_ALLOC_CONF)",
      "a smaller batch with gradient accumulation; activation checkpointing; bf16"};
  finding.evidence.push_back(
      {"device memory in use at most", filled, "ratio", "nvml", "gpu_memory_used", {}, {}});
  if (const auto retries = view.Fact("allocator_retries")) {
    finding.evidence.push_back(
        {"allocator retries", ParseDouble(*retries).value_or(0), "count", "hook", "", {}, {}});
  }
  diagnosis.findings.push_back(std::move(finding));
}

void JudgeRoom(const View& view, double filled, Diagnosis& diagnosis) {
  const auto sm = view.Mean(Metric::kGpuSmActive), occupancy = view.Mean(Metric::kGpuSmOccupancy);
  const auto utilization = view.Mean(Metric::kGpuUtilization);
  if (filled > 1 - kMemoryHeadroom || !view.HasSteps()) return;
  const bool chip_not_full = (sm && *sm < kDeviceBusy) || (occupancy && *occupancy < kOccupancyLow);
  const bool waits_for_others = utilization && *utilization < kDeviceBusy;
  // Judged without GPM too: an idle device does not get busier by a larger batch while it waits for data.
  if (waits_for_others || (!chip_not_full && (sm || occupancy))) return;
  Finding finding;
  finding.id = "small-batch";
  finding.severity = Severity::kInfo;
  finding.title =
      fmt::format("Device memory is only {} full: a larger batch is worth trying.", FormatPercent(filled));
  finding.fix = {"double the batch size and compare samples/s; stop at about 80 % of the memory",
                 "raise the learning rate with it (linearly for SGD, by the square root for Adam) and warm "
                 "up; very large batches can cost accuracy"};
  finding.evidence.push_back(
      {"device memory in use at most", filled, "ratio", "nvml", "gpu_memory_used", {}, {}});
  if (sm)
    finding.evidence.push_back({"multiprocessors active", *sm, "ratio", "nvml", "gpu_sm_active", {}, {}});
  if (occupancy)
    finding.evidence.push_back(
        {"occupancy of the multiprocessors", *occupancy, "ratio", "nvml", "gpu_sm_occupancy", {}, {}});
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeDeviceMemory(const View& view, Diagnosis& diagnosis) {
  const auto used = view.Max(Metric::kGpuMemoryUsed), total = view.Max(Metric::kGpuMemoryTotal);
  if (!used || !total || *total <= 0) return;
  JudgeFull(view, *used / *total, diagnosis);
  JudgeRoom(view, *used / *total, diagnosis);
  diagnosis.not_judged.push_back(
      {"oversized-batch", "one batch size was measured", "fullbore compare of runs with other batch sizes"});
}

void JudgeThrottle(const View& view, Diagnosis& diagnosis) {
  const double thermal = view.Mean(Metric::kGpuThrottleThermal).value_or(0),
               power = view.Mean(Metric::kGpuThrottlePower).value_or(0);
  if (std::max(thermal, power) < kThrottled) return;
  const bool hot = thermal >= kThrottled;
  Finding finding;
  finding.id = "throttle";
  finding.cause = hot ? "thermal" : "power";
  // A device at its power limit works as hard as it was built to; one at its temperature limit is cooled too
  // little.
  finding.severity = hot ? Severity::kWarning : Severity::kInfo;
  finding.share = hot ? std::min(1.0, thermal) : 0;
  finding.title = fmt::format("The GPU was held back by {} {} of the time.", hot ? "heat" : "its power limit",
                              FormatPercent(hot ? thermal : power));
  finding.fix = {hot ? "check the cooling (nvidia-smi -q -d PERFORMANCE,TEMPERATURE): air flow, fans, a "
                       "neighbour that heats it"
                     : "see whether the power limit was lowered (nvidia-smi -q -d POWER)",
                 "another device may be cooler or less limited"};
  finding.evidence.push_back(
      {"time held back by heat", thermal, "ratio", "nvml", "gpu_throttle_thermal", {}, {}});
  finding.evidence.push_back(
      {"time held back by power", power, "ratio", "nvml", "gpu_throttle_power", {}, {}});
  const auto clock = view.Mean(Metric::kGpuSmClock), most = view.Max(Metric::kGpuSmClockMax);
  if (clock && most && *most > 0) {
    finding.evidence.push_back(
        {"SM clock of its maximum", *clock / *most, "ratio", "nvml", "gpu_sm_clock", {}, {}});
    if (hot && *clock < *most) {
      finding.speedup = {1 + (*most / *clock - 1) / 2, 1, *most / *clock};
      finding.method = "the step scaled with the clock; at the low end not at all (memory-bound)";
    }
  }
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace fullbore::diagnose
