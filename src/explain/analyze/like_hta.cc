#include "explain/analyze/like_hta.h"

#include <algorithm>

#include "base/text.h"

namespace fullbore::analyze {
namespace {

using timeline::DeviceOp;
using timeline::Lane;

constexpr int64_t kMicrosecondNs = 1000;

int64_t Down(int64_t ns) { return ns / kMicrosecondNs * kMicrosecondNs; }
int64_t Up(int64_t ns) { return Down(ns + kMicrosecondNs - 1); }

bool Has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

Lane LaneOf(std::string_view name, Lane ours) {
  const auto is_copy = [](Lane lane) { return (timeline::Bit(lane) & timeline::kCopyLanes) != 0; };
  const auto is_compute = [](Lane lane) { return (timeline::Bit(lane) & timeline::kComputeLanes) != 0; };
  if (name.starts_with("nccl") && Has(name, "Kernel")) return Lane::kComm;
  if (name.starts_with("Memcpy") || name.starts_with("Memset") || name.starts_with("dma")) {
    return is_copy(ours) ? ours : Lane::kD2d;
  }
  // "Other" to HTA, which neither computes nor communicates: for us the lane that is exposed last.
  if (Has(name, "Memcpy") || Has(name, "Sync")) return Lane::kMemset;
  return is_compute(ours) ? ours : Lane::kOtherCompute;
}

void LeaveOutLastStep(timeline::DeviceTrace* trace) {
  if (trace->steps.size() < 2) return;
  const int64_t last_begin = trace->steps.back().begin_ns;
  DeviceOp* kept = std::remove_if(trace->ops.begin(), trace->ops.end(), [&](const DeviceOp& op) {
    if (op.correlation == 0) return false;
    return op.call == timeline::kNone || op.launch_begin_ns >= last_begin;
  });
  const auto left_out = trace->ops.end() - kept;
  trace->ops.resize_down(static_cast<size_t>(kept - trace->ops.begin()));
  trace->steps.pop_back();
  trace->notes.push_back("as Holistic Trace Analysis does it: the last ProfilerStep is left out, and " +
                         FormatCount(static_cast<double>(left_out)) +
                         " operations launched in it or before the trace began");
}

void RoundTimes(timeline::DeviceTrace* trace) {
  const bool fractions = std::any_of(trace->ops.begin(), trace->ops.end(), [](const DeviceOp& op) {
    return op.begin_ns % kMicrosecondNs != 0 || op.end_ns % kMicrosecondNs != 0;
  });
  if (!fractions) return;
  int64_t lost = 0;
  for (DeviceOp& op : trace->ops) {
    lost += op.end_ns - op.begin_ns;
    op.begin_ns = Up(op.begin_ns);
    op.end_ns = std::max(op.begin_ns, Down(op.end_ns));
    lost -= op.end_ns - op.begin_ns;
  }
  trace->notes.push_back(
      "as Holistic Trace Analysis does it: times are cut to whole microseconds, which loses " +
      FormatDuration(lost) + " of device time");
}

}  // namespace

void CutLikeHta(timeline::DeviceTrace& trace) {
  LeaveOutLastStep(&trace);
  RoundTimes(&trace);
  for (DeviceOp& op : trace.ops) op.lane = LaneOf(trace.names[op.name], op.lane);
}

}  // namespace fullbore::analyze
