// How many operators the profiler noted in a stretch of a thread.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::timeline {

class OperatorCount {
 public:
  explicit OperatorCount(const DeviceTrace& trace);  // which outlives it

  // Those within another one are spread evenly over it.
  float In(uint16_t thread, int64_t begin_ns, int64_t end_ns) const;

 private:
  std::vector<std::vector<const HostSpan*>> outermost_;  // by thread
};

}  // namespace fullbore::timeline
