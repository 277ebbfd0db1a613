// small-batch: device memory is free and the chip is not full: a larger batch is worth trying.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/device_memory.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"

namespace fullbore::diagnose {

using record::Metric;

std::optional<Finding> JudgeSmallBatch(const View& view, Diagnosis& diagnosis) {
  const auto fullest = FilledDeviceMemory(view);
  if (!fullest) return std::nullopt;
  const double filled = *fullest;
  const auto sm = view.Mean(Metric::kGpuSmActive), occupancy = view.Mean(Metric::kGpuSmOccupancy);
  const auto utilization = view.Mean(Metric::kGpuUtilization);
  if (!view.HasSteps()) return std::nullopt;
  if (filled > 1 - kMemoryHeadroom) {
    diagnosis.not_judged.push_back({"whether a smaller batch would do", "one batch size was measured",
                                    "fullbore compare on runs with different batch sizes"});
    return std::nullopt;
  }
  const bool chip_not_full = (sm && *sm < kDeviceBusy) || (occupancy && *occupancy < kOccupancyLow);
  const bool waits_for_others = utilization && *utilization < kDeviceBusy;
  // Judged without GPM too. While the device waits for data, a larger batch does not make it busier.
  if (waits_for_others || (!chip_not_full && (sm || occupancy))) return std::nullopt;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = Severity::kInfo;
  finding.title =
      fmt::format("Device memory is only {} full: a larger batch is worth trying.", FormatPercent(filled));
  finding.fix = {"double the batch size and compare samples/s; stop at about 80 % of the memory",
                 "raise the learning rate with it (linearly for SGD, by the square root for Adam) and warm "
                 "up; very large batches can cost accuracy"};
  evidence.FromMetric(Metric::kGpuMemoryUsed, "peak device memory in use", filled, "ratio");
  evidence.FromMetric(Metric::kGpuSmActive, "multiprocessors active", sm);
  evidence.FromMetric(Metric::kGpuSmOccupancy, "occupancy of the multiprocessors", occupancy);
  return finding;
}

}  // namespace fullbore::diagnose
