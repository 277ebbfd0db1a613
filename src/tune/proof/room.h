// Whether two trials find room beside each other: in the memory of the host, or of the control group, and of the
// devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/probe/nvml/device_memory.h"
#include "tune/trial/memory.h"

namespace fullbore::tune {

struct MemoryNow {
  std::optional<int64_t> host;  // bytes that are left; nothing where that is not known
  std::vector<probe::nvml::DeviceMemory> devices;
};
MemoryNow LookAtMemory();

// Whether somebody began to use a device in between, whom the hook may not have seen.
bool AnyDeviceWasTaken(const MemoryNow& before, const MemoryNow& after);

// Why there is no room for the second one; nothing where there is. `before` is from before the first one started,
// `beside` from when it had warmed up. `first` and `second`: what they took alone, where that is known; else the second
// is expected to take what the first one does. A tenth of what there was is everybody else's.
std::optional<std::string> NoRoomForBoth(const MemoryNow& before, const MemoryNow& beside, bool uses_device,
                                         const MemoryUse& first, const MemoryUse& second);

}  // namespace fullbore::tune
