// What is left of the memory of each device now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fullbore::probe::nvml {

struct DeviceMemory {
  std::string title;            // "GPU 3"
  int64_t free = 0, total = 0;  // bytes
};

// Asks NVML for this one answer. Empty where it shows no device; without those that are out of reach, or whose memory is
// the host's.
std::vector<DeviceMemory> MemoryOfDevices();

}  // namespace fullbore::probe::nvml
