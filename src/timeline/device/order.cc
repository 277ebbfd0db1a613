#include "timeline/device/order.h"

#include <algorithm>
#include <map>

namespace fullbore::timeline {

std::vector<uint32_t> OrderOfLaunches(const DeviceTrace& trace) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].call != kNone) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return trace.ops[a].launch_begin_ns < trace.ops[b].launch_begin_ns;
  });
  return order;
}

std::vector<uint16_t> DevicesOfStreams(const DeviceTrace& trace) {
  std::vector<uint16_t> devices(trace.streams.size() + 1, 0);
  std::map<std::string, uint16_t> numbers;
  for (size_t i = 0; i < trace.streams.size(); ++i) {
    const std::string device = trace.streams[i].substr(0, trace.streams[i].find('/'));
    devices[i] = numbers.try_emplace(device, static_cast<uint16_t>(numbers.size())).first->second;
  }
  return devices;
}

bool RunsOperations(CallKind kind) { return kind == CallKind::kLaunch || kind == CallKind::kGraphLaunch; }

bool WaitsForStream(const DeviceTrace& trace, const HostCall& call) {
  return call.kind == CallKind::kSync &&
         std::string_view(trace.names[call.name]).find("StreamSynchronize") != std::string_view::npos;
}

bool WaitsForDevice(const DeviceTrace& trace, const HostCall& call) {
  if (call.kind != CallKind::kSync) return false;
  const std::string_view name = trace.names[call.name];
  if (name.find("DeviceSynchronize") != std::string_view::npos) return true;
  return trace.streams.size() <= 1 && WaitsForStream(trace, call);
}

}  // namespace fullbore::timeline
