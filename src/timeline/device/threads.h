// When the host's threads were inside anything recorded, and which of them waited for which other.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::timeline {

struct BusySpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// By thread: calls, operators and what is marked in the loop, joined where they touch or overlap.
std::vector<std::vector<BusySpan>> BusySpans(const DeviceTrace& trace);

// A stretch in which a thread does nothing but wait for another one to come to some point.
struct HandOver {
  uint16_t waiting = 0;
  uint16_t working = 0;
  int64_t begin_ns = 0;  // of the wait
  int64_t end_ns = 0;
  int64_t worked_until_ns = 0;  // where the other one is when the wait ends; not after end_ns
};

// A thread that was silent while exactly in that time another one began and ended its work had handed over to
// it: a training thread to autograd's, for the backward pass. That one had waited before, in turn, and waits
// again afterwards. By waiting thread, then by begin.
std::vector<HandOver> FindHandOvers(const std::vector<std::vector<BusySpan>>& busy);

}  // namespace fullbore::timeline
