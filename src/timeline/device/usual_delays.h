// What passes between things of a device that do not wait for anything else.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::timeline {

// Consecutive operations of a stream follow one another within this, and an operation its launch (as in
// explain/analyze/idle_breakdown.cc, after HTA).
inline constexpr int64_t kFollowNs = 30'000;

struct UsualDelays {
  // Between operations of a stream, of those whose next one was launched long before: the median.
  int64_t gap_ns = 0;
  int64_t least_delay_ns = 0;  // from the begin of a launch to that of its operation
};

// From operations of which it is clear what they waited for.
UsualDelays UsualDelaysOf(const DeviceTrace& trace);

// What a launch of a kernel takes on the host: the lower quartile, since half of them and more may wait for room. 0
// where there are none. `own_op`: by call, the operation that it launched, or kNone.
int64_t UsualLaunchNs(const DeviceTrace& trace, const std::vector<uint32_t>& own_op);

}  // namespace fullbore::timeline
