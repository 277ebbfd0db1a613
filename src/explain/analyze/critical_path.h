// The critical path: from the end of the last device operation back to the beginning, each time to what the
// current piece waited for. Only what is on it makes the run longer or shorter.
//
//   An operation began when the previous one on its stream ended (it was already queued), or when the host had
//   launched it. The host launched it after working its way there from the last call in which it waited for
//   the device, and that call returned when the last operation that it waited for had ended.
//
// Traces have no events for cudaStreamWaitEvent, so what a stream waited for on another one is not recorded.
// If an operation was queued and began later than consecutive kernels usually follow one another, the path
// goes to the last operation of another stream that ended in between. That is an assumption, and a note says
// so. If there is none, the time is listed as one that cannot be told.
#pragma once

#include <cstdint>
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
  uint32_t op = timeline::kNone;  // index into the trace's operations, of the pieces on the device
};

struct CriticalPath {
  std::vector<PathPiece> pieces;  // by time, without gaps
  int64_t assumed = 0;            // dependencies between streams that are assumed, not recorded
  bool to_the_begin = false;  // if not, the launch of an operation was not recorded, and the path ends there
};

CriticalPath FindCriticalPath(const RankTrace& rank);

}  // namespace fullbore::analyze
