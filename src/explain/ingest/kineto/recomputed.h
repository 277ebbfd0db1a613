// What the backward pass runs again of the forward pass, as the operators of a trace show it (activation checkpointing).
#pragma once

#include <cstdint>

#include "explain/ingest/kineto/event.h"
#include "timeline/device/trace.h"

namespace fullbore::ingest::kineto {

class Recomputed {
 public:
  explicit Recomputed(timeline::DeviceTrace* trace) : trace_(trace) {}

  // An operator within a node of the backward pass.
  void Take(const RawEvent& event, int64_t begin_ns, int64_t end_ns, const timeline::HostSpan& node);
  void Finish();  // after the last one

 private:
  timeline::DeviceTrace* const trace_;
  // Of one node, so far; and whether it is known to be of a forward pass.
  timeline::Recomputation again_;
  int64_t node_begin_ns_ = INT64_MIN;
  bool is_forward_ = false;
};

}  // namespace fullbore::ingest::kineto
