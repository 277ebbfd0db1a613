// One rank's trace as sections see it. What several of them need is computed once, on first use.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "record/roofline.h"
#include "timeline/device/host.h"
#include "timeline/device/shares.h"
#include "timeline/device/steps.h"
#include "timeline/device/trace.h"

namespace fullbore::analyze {

// An outermost operator of a host thread: aten::conv2d, a backward node, a collective's call.
struct Operator {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  timeline::NameId name = 0;
  uint16_t thread = 0;
};

class RankTrace {
 public:
  explicit RankTrace(const timeline::DeviceTrace& trace) : trace_(trace) {}

  const timeline::DeviceTrace& trace() const { return trace_; }
  int64_t rank() const { return trace_.rank.value_or(0); }
  int64_t begin_ns() const;  // of the first event of any kind: times in tables count from here
  int64_t end_ns() const;

  const timeline::HostActivity& host() const;
  const timeline::FoundSteps& steps() const;
  const timeline::DeviceShares& shares() const;
  const std::vector<Operator>& operators() const;  // by thread, then by begin; disjoint within a thread
  const record::Roofline& roofline() const;

  std::string Name(timeline::NameId id) const { return std::string(trace_.names[id]); }
  std::string Stream(uint16_t stream) const { return trace_.streams.at(stream); }

  // Index into operators() of the one that launched the operation, kNone if that is not known.
  uint32_t OperatorOf(const timeline::DeviceOp& op) const;
  uint32_t OperatorAt(uint16_t thread, int64_t t_ns) const;

  // Operations by stream, each list by begin.
  std::map<uint16_t, std::vector<const timeline::DeviceOp*>> ByStream() const;

 private:
  const timeline::DeviceTrace& trace_;
  mutable std::unique_ptr<timeline::HostActivity> host_;
  mutable std::optional<timeline::FoundSteps> steps_;
  mutable std::optional<timeline::DeviceShares> shares_;
  mutable std::optional<std::vector<Operator>> operators_;
  mutable std::optional<record::Roofline> roofline_;
};

// What an operation is for: "compute", "comm" or "copy".
const char* TypeOf(timeline::Lane lane);

}  // namespace fullbore::analyze
