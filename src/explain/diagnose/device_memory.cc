#include "explain/diagnose/device_memory.h"

#include <algorithm>

namespace fullbore::diagnose {

using record::Metric;

std::optional<double> FilledDeviceMemory(const View& view) {
  std::optional<double> filled;
  for (const record::Series& series : view.stage().series) {
    if (!IsOf(series.key, Metric::kGpuMemoryUsed)) continue;
    const auto used = view.Max(Metric::kGpuMemoryUsed, series.key.labels),
               total = view.Max(Metric::kGpuMemoryTotal, series.key.labels);
    if (used && total && *total > 0) filled = std::max(filled.value_or(0), *used / *total);
  }
  return filled;
}

}  // namespace fullbore::diagnose
