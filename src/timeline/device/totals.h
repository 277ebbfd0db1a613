// What a stretch of device activity adds up to, from the segments of the sweep.
#pragma once

#include <array>
#include <cstdint>

#include "timeline/device/sweep.h"

namespace fullbore::timeline {

struct DeviceTotals {
  int64_t busy_ns = 0;             // the union of everything
  int64_t compute_ns = 0;          // the union of compute kernels
  int64_t comm_ns = 0;             // the union of collectives; of that
  int64_t comm_overlapped_ns = 0;  // while a compute kernel runs
  int64_t comm_exposed_ns = 0;     // while none does
  int64_t copy_ns = 0;             // the union of copies and memsets; of that
  int64_t copy_exposed_ns = 0;     // while neither of the above runs
  // Time by the first active lane: the compute lanes sum to compute_ns, comm is comm_exposed_ns, the copy
  // lanes sum to copy_exposed_ns.
  std::array<int64_t, kLaneCount> lane_ns{};

  void Add(uint32_t mask, int64_t ns) {
    if (mask == 0) return;
    const bool compute = (mask & kComputeLanes) != 0;
    const bool comm = (mask & kCommLane) != 0;
    const bool copy = (mask & kCopyLanes) != 0;
    busy_ns += ns;
    compute_ns += compute ? ns : 0;
    comm_ns += comm ? ns : 0;
    comm_overlapped_ns += comm && compute ? ns : 0;
    comm_exposed_ns += comm && !compute ? ns : 0;
    copy_ns += copy ? ns : 0;
    copy_exposed_ns += copy && !compute && !comm ? ns : 0;
    lane_ns[static_cast<size_t>(__builtin_ctz(mask))] += ns;
  }
};

}  // namespace fullbore::timeline
