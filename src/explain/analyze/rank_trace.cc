#include "explain/analyze/rank_trace.h"

#include <algorithm>

#include "explain/roofline/roofline.h"

namespace fullbore::analyze {

using timeline::DeviceOp;
using timeline::SpanKind;

int64_t RankTrace::begin_ns() const {
  int64_t begin = INT64_MAX;
  if (!trace_.ops.empty()) begin = std::min(begin, trace_.ops[0].begin_ns);
  if (!trace_.calls.empty()) begin = std::min(begin, trace_.calls[0].begin_ns);
  if (!trace_.spans.empty()) begin = std::min(begin, trace_.spans[0].begin_ns);
  if (!trace_.steps.empty()) begin = std::min(begin, trace_.steps[0].begin_ns);
  return begin == INT64_MAX ? 0 : begin;
}

int64_t RankTrace::end_ns() const {
  int64_t end = begin_ns();
  for (const DeviceOp& op : trace_.ops) end = std::max(end, op.end_ns);
  for (const timeline::HostSpan& span : trace_.spans) end = std::max(end, span.end_ns);
  return end;
}

const timeline::HostActivity& RankTrace::host() const {
  if (!host_) host_ = std::make_unique<timeline::HostActivity>(trace_);
  return *host_;
}

const timeline::FoundSteps& RankTrace::steps() const {
  if (!steps_) steps_ = timeline::FindSteps(trace_);
  return *steps_;
}

const timeline::DeviceShares& RankTrace::shares() const {
  if (!shares_) shares_ = timeline::ShareDeviceTime(trace_, host(), steps().steps);
  return *shares_;
}

const std::vector<Operator>& RankTrace::operators() const {
  if (operators_) return *operators_;
  operators_.emplace();
  std::vector<std::vector<Operator>> threads(trace_.threads.size() + 1);
  for (const timeline::HostSpan& span : trace_.spans) {
    if (span.kind != SpanKind::kOp && span.kind != SpanKind::kBackward &&
        span.kind != SpanKind::kCollectiveCall)
      continue;
    auto& thread = threads[span.thread];
    if (!thread.empty() && span.begin_ns < thread.back().end_ns) continue;
    thread.push_back({span.begin_ns, span.end_ns, span.name, span.thread});
  }
  for (const auto& thread : threads) operators_->insert(operators_->end(), thread.begin(), thread.end());
  return *operators_;
}

const record::Roofline& RankTrace::roofline() const {
  if (!roofline_) roofline_ = roofline::Judge(trace_, steps().steps, roofline::DeviceOf(trace_));
  return *roofline_;
}

uint32_t RankTrace::OperatorOf(const DeviceOp& op) const {
  return op.call == timeline::kNone ? timeline::kNone : OperatorAt(op.launch_thread, op.launch_begin_ns);
}

uint32_t RankTrace::OperatorAt(uint16_t thread, int64_t t_ns) const {
  const auto& all = operators();
  const auto after = std::partition_point(all.begin(), all.end(), [&](const Operator& one) {
    return one.thread != thread ? one.thread < thread : one.begin_ns <= t_ns;
  });
  if (after == all.begin()) return timeline::kNone;
  const Operator& found = *std::prev(after);
  return found.thread == thread && t_ns < found.end_ns ? static_cast<uint32_t>(std::prev(after) - all.begin())
                                                       : timeline::kNone;
}

std::map<uint16_t, std::vector<const DeviceOp*>> RankTrace::ByStream() const {
  std::map<uint16_t, std::vector<const DeviceOp*>> streams;
  for (const DeviceOp& op : trace_.ops) streams[op.stream].push_back(&op);
  return streams;
}

const char* TypeOf(timeline::Lane lane) {
  const uint32_t bit = timeline::Bit(lane);
  if ((bit & timeline::kComputeLanes) != 0) return "compute";
  return (bit & timeline::kCommLane) != 0 ? "comm" : "copy";
}

}  // namespace fullbore::analyze
