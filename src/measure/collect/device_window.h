// Takes what a window of the framework's own profiler left in the channel's directory (docs/channel.md).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "record/recording.h"

namespace fullbore::collect {

// What the trainer says of one.
struct DeviceWindowNote {
  std::string file;  // its name in the channel's directory
  int64_t first_step = 0;
  int64_t steps = 0;
};

// Compresses the file and removes it. The rank is left to the caller.
Result<record::DeviceWindow> TakeDeviceWindow(const std::string& directory, const DeviceWindowNote& note);

}  // namespace fullbore::collect
