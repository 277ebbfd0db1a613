// memory-pressure: the device's memory is nearly full.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "explain/diagnose/device_memory.h"
#include "explain/diagnose/evidence.h"
#include "explain/diagnose/judge/judge.h"

namespace fullbore::diagnose {

using record::Metric;

std::optional<Finding> JudgeMemoryPressure(const View& view, Diagnosis& /*diagnosis*/) {
  const auto fullest = FilledDeviceMemory(view);
  if (!fullest || *fullest < kDeviceMemoryWarning) return std::nullopt;
  const double filled = *fullest;
  Finding finding;
  const EvidenceBuilder evidence(finding);
  finding.severity = filled >= kDeviceMemoryCritical ? Severity::kCritical : Severity::kWarning;
  finding.title =
      fmt::format("Device memory is {} full: the next larger input may fail.", FormatPercent(filled));
  finding.fix = {
      "PYTORCH_ALLOC_CONF=expandable_segments:True against fragmentation (before PyTorch 2.10: "
      "PYTORCH_CUDA_ALLOC_CONF)",
      "a smaller batch with gradient accumulation; activation checkpointing; bf16"};
  evidence.FromMetric(Metric::kGpuMemoryUsed, "peak device memory in use", filled, "ratio");
  return finding;
}

}  // namespace fullbore::diagnose
