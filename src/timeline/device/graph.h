// One rank's trace as a graph of what waited for what (record/step_graph.h).
//
//   host thread   work | launch | work | blocking call ... return | work
//                          |                   ^
//                          v                   |
//   stream              kernel -> kernel -> kernel
//
// Traces say which call launched which operation, and the order on threads and streams. The rest is told from
// times:
// - A call that blocked returned soon after the last operation that it waited for.
// - An operation that its thread had launched, and whose stream was free, began late: if an operation of
//   another stream ended just before, it waited for that (an event, which traces seldom record), or for the
//   room that it took on the device. Otherwise the time is unexplained, and a node of its own.
// - A thread that was silent while another one began and ended its work in that very gap waited for it: as a
//   training thread waits for autograd's.
#pragma once

#include "record/step_graph.h"
#include "timeline/device/host.h"
#include "timeline/device/steps.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

// Enough for a step's shape, and 30 MB of graph at most.
inline constexpr size_t kMaxGraphOps = 50'000;

// The graph of the first steps, as many as have no more than `max_ops` operations together, but at least one. Its
// kDevice nodes are the first operations of the trace, in their order.
record::StepGraph GraphOf(const DeviceTrace& trace, const HostActivity& host,
                          const std::vector<StepBounds>& steps, size_t max_ops = kMaxGraphOps);

}  // namespace fullbore::timeline
