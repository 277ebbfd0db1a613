// Which processes use a device now, and which of them have worked on it since the last look: whatever they compute, draw
// or send through MPS. Owned and called by the thread that owns the session.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "measure/probe/nvml/nvml_session.h"

namespace fullbore::probe::nvml {

struct DeviceUser {
  int64_t pid = 0;                       // of the machine, also inside a container
  std::optional<uint64_t> memory_bytes;  // absent where the driver does not say
};

// All of `list`, however many there are.
Return ListProcesses(const Function<Device, uint32_t*, ProcessInfo*>& list, Device device,
                     std::vector<ProcessInfo>& processes);

class DeviceUsers {
 public:
  explicit DeviceUsers(Session& session) : session_(session) {}

  // Each process once, by pid. Nothing where this device does not say.
  std::optional<std::vector<DeviceUser>> Of(Gpu& gpu, Sink& sink);
  // Those that ran a kernel since the last call. Nothing where this device does not say: an instance never does.
  std::optional<std::set<int64_t>> WorkedSince(Gpu& gpu, Sink& sink);

 private:
  Session& session_;
  Switch listed_, timed_;
  unsigned long long seen_us_ = 0;
};

}  // namespace fullbore::probe::nvml
