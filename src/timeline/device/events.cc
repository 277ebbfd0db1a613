#include "timeline/device/events.h"

#include <algorithm>

namespace fullbore::timeline {

DeviceEvents::DeviceEvents(const DeviceTrace& trace) : trace_(trace) {
  if (trace.waits.empty()) return;
  for (uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].call != kNone) launched_on_[trace.ops[i].stream].push_back(i);
  }
  for (auto& [stream, ops] : launched_on_) {
    std::stable_sort(ops.begin(), ops.end(), [&](uint32_t a, uint32_t b) {
      return trace.ops[a].launch_begin_ns < trace.ops[b].launch_begin_ns;
    });
  }
  for (const WaitRecord& wait : trace.waits) waits_.emplace(wait.correlation, &wait);
  ReadStreamWaits();
}

// The next operation launched on the waiting stream waits for the last one that had been launched on the
// other stream when the event was recorded.
void DeviceEvents::ReadStreamWaits() {
  for (const WaitRecord& wait : trace_.waits) {
    if (wait.kind != WaitKind::kStreamEvent || wait.event_recorded == 0) continue;
    const auto recorded =
        std::partition_point(trace_.event_calls.begin(), trace_.event_calls.end(),
                             [&](const EventCall& call) { return call.correlation < wait.event_recorded; });
    if (recorded == trace_.event_calls.end() || recorded->correlation != wait.event_recorded) continue;
    const uint32_t from = LastLaunchedOn(wait.on_stream, recorded->begin_ns);
    const uint32_t to = FirstLaunchedOn(wait.stream, wait.begin_ns);
    if (from != kNone && to != kNone && from != to) events_.emplace(to, from);
  }
}

std::vector<uint32_t> DeviceEvents::WaitedForBy(uint32_t op) const {
  std::vector<uint32_t> waited_for;
  const auto [first, past] = events_.equal_range(op);
  for (auto event = first; event != past; ++event) waited_for.push_back(event->second);
  return waited_for;
}

uint32_t DeviceEvents::WaitedForBy(const HostCall& call) const {
  const auto wait = call.correlation == 0 ? waits_.end() : waits_.find(call.correlation);
  if (wait == waits_.end() || wait->second->kind != WaitKind::kStream) return kNone;
  const uint32_t op = LastLaunchedOn(wait->second->stream, call.begin_ns);
  return op != kNone && trace_.ops[op].end_ns > call.begin_ns ? op : kNone;
}

uint32_t DeviceEvents::LastLaunchedOn(uint16_t stream, int64_t before_ns) const {
  const auto ops = launched_on_.find(stream);
  if (ops == launched_on_.end()) return kNone;
  const auto past = FirstLaunch(ops->second, before_ns);
  return past == ops->second.begin() ? kNone : *std::prev(past);
}

uint32_t DeviceEvents::FirstLaunchedOn(uint16_t stream, int64_t from_ns) const {
  const auto ops = launched_on_.find(stream);
  if (ops == launched_on_.end()) return kNone;
  const auto first = FirstLaunch(ops->second, from_ns);
  return first == ops->second.end() ? kNone : *first;
}

DeviceEvents::Ops::const_iterator DeviceEvents::FirstLaunch(const Ops& ops, int64_t from_ns) const {
  return std::partition_point(ops.begin(), ops.end(),
                              [&](uint32_t i) { return trace_.ops[i].launch_begin_ns < from_ns; });
}

}  // namespace fullbore::timeline
