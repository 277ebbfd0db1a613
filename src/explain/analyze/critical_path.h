// The critical path: from the end of the last device operation back to the beginning, each time to what the
// current piece waited for, as the graph of the trace says (timeline/device/graph.h). Only what is on it makes the
// run longer or shorter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/analyze/rank_trace.h"

namespace fullbore::analyze {

enum class Bound : uint8_t {
  kGpuCompute,
  kGpuComm,
  kGpuCopy,
  kKernelKernel,  // between two operations of a stream, both queued
  kLaunch,        // from the host's call to the beginning on the device
  kHost,          // framework and Python on the way to the launch
  kDataLoader,    // the host inside the loader's `next`
  kSync,          // from the end of the device's work to the return of the call that waited for it
  kHostOther,     // checkpoint, validation, garbage collection, or nothing recorded
  kCannotBeTold,
};
inline constexpr size_t kBoundCount = 10;
const char* Name(Bound bound);

struct PathPiece {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  Bound bound = Bound::kCannotBeTold;
  uint32_t name =
      0;  // into CriticalPath::names: the operation, of the pieces on the device; 0 for the others
};

struct CriticalPath {
  std::vector<PathPiece> pieces;  // by time, without gaps
  std::vector<std::string> names;
  int64_t assumed = 0;        // dependencies between streams that are assumed, not recorded
  bool to_the_begin = false;  // if not, the launch of an operation was not recorded, and the path ends there
};

CriticalPath FindCriticalPath(const RankTrace& rank);

}  // namespace fullbore::analyze
