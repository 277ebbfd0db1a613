#include "measure/probe/nvml/device_users.h"

#include <algorithm>
#include <map>

namespace fullbore::probe::nvml {

namespace {

constexpr uint32_t kUsualProcesses = 64;
constexpr uint32_t kMostProcesses = 4096;
constexpr uint32_t kMostTimed = 256;

}  // namespace

Return ListProcesses(const Function<Device, uint32_t*, ProcessInfo*>& list, Device device,
                     std::vector<ProcessInfo>& processes) {
  // Processes may come between two calls, and `count` is not what it should be from every driver.
  for (uint32_t room = kUsualProcesses;; room *= 4) {
    processes.resize(room);
    uint32_t count = room;
    const Return code = list(device, &count, processes.data());
    if (code == kInsufficientSize && room < kMostProcesses) continue;
    processes.resize(code == kSuccess ? std::min(count, room) : 0);
    return code;
  }
}

std::optional<std::vector<DeviceUser>> DeviceUsers::Of(Gpu& gpu, Sink& sink) {
  if (!listed_.on || gpu.away) return std::nullopt;
  const Library& library = session_.library();
  std::vector<ProcessInfo> listed;
  if (!session_.Succeeded(ListProcesses(library.compute_processes, gpu.device, listed), gpu, listed_, sink))
    return std::nullopt;
  std::map<int64_t, DeviceUser> users;
  const auto take = [&] {
    for (const ProcessInfo& process : listed) {
      DeviceUser& user = users[process.pid];
      user.pid = process.pid;
      if (process.used_memory != kMemoryNotAvailable) user.memory_bytes = process.used_memory;
    }
  };
  take();
  for (const auto* more : {&library.graphics_processes, &library.mps_processes}) {
    if (ListProcesses(*more, gpu.device, listed) == kSuccess) take();
  }
  std::vector<DeviceUser> all;
  for (const auto& [pid, user] : users) all.push_back(user);
  return all;
}

std::optional<std::set<int64_t>> DeviceUsers::WorkedSince(Gpu& gpu, Sink& sink) {
  if (!timed_.on || gpu.away) return std::nullopt;
  std::vector<ProcessUtilization> samples(kMostTimed);
  uint32_t count = kMostTimed;
  const Return code = session_.library().process_utilization(gpu.device, samples.data(), &count, seen_us_);
  if (code == kNotFound) return std::set<int64_t>();
  if (!session_.Succeeded(code, gpu, timed_, sink)) return std::nullopt;
  samples.resize(std::min(count, kMostTimed));
  const unsigned long long before_us = seen_us_;
  std::set<int64_t> worked;
  for (const ProcessUtilization& sample : samples) {
    // The library also returns processes that are gone, and absurd values.
    if (sample.timestamp_us <= before_us || sample.sm_percent > 100) continue;
    seen_us_ = std::max<unsigned long long>(seen_us_, sample.timestamp_us);
    if (sample.sm_percent > 0) worked.insert(sample.pid);
  }
  return worked;
}

}  // namespace fullbore::probe::nvml
