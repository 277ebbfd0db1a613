// The critical path: from the end of the last device operation back to the begin, always to what the present
// piece had waited for. What is on it, and only that, makes the run longer or shorter.
//
//   An operation began when the one before it on its stream ended (it was queued already), or when the host
//   had launched it. The host launched when it had worked its way there from the last call in which it waited
//   for the device, and that call returned when the operation that ended last in it had ended.
//
// Traces carry no events of cudaStreamWaitEvent, so what a stream waited for on another one is not recorded.
// Where an operation had been queued and began later than consecutive kernels follow one another, the path
// goes to the operation of another stream that ended last before, if that was in the meantime: assumed, and
// said so. Else the time cannot be told, and is listed as that.
#pragma once

#include <cstdint>
#include <vector>

#include "explain/analyze/rank_trace.h"

namespace fullbore::analyze {

enum class Bound : uint8_t {
  kGpuCompute,
  kGpuComm,
  kGpuCopy,
  kKernelKernel,  // between two operations of a stream that were both queued
  kLaunch,        // from the host's call to the begin on the device
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
  std::vector<PathPiece> pieces;  // by time, without holes
  int64_t assumed = 0;            // dependencies between streams that are taken for granted, not recorded
  bool to_the_begin = false;      // else the launch of an operation was not recorded, and the path ends there
};

CriticalPath FindCriticalPath(const RankTrace& rank);

}  // namespace fullbore::analyze
