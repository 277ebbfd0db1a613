// What an operation would take on another device of the table: its time above the least that its class takes, by what
// libraries reach on both devices for its work, and that least time of the other one (Device::reached).
//
//   t' = least' * min(t, least) / least  +  max(0, t - least) * work' / work
//
// `work` is the longer of the arithmetic at the rate that is reached for it and the bytes at the bandwidth that is
// reached. Where the operation's shapes are not known, its class tells: matrix kernels are bound by their arithmetic,
// attention by its own, everything else by memory. What nobody has published is assumed to be the usual part of the
// peak, and the range is wider then. Of a kernel that memory limits and whose bytes are known to
// pass sooner than it starts, what lies above `least` goes with the start: small tensors stay in caches.
#pragma once

#include "explain/roofline/devices.h"
#include "record/step_graph.h"

namespace fullbore::roofline {

struct OnAnother {
  double expected_ns = 0;
  double least_ns = 0, most_ns = 0;  // as it is likely to be at best and at worst
};

// `operation` is a kDevice node of the graph of steps on `from`. What the device does not do for itself stays as it is:
// collectives, pageable copies; pinned copies take the bus.
OnAnother OnDevice(const Device& from, const Device& to, const record::StepGraph& graph,
                   const record::StepGraph::Node& operation);

}  // namespace fullbore::roofline
