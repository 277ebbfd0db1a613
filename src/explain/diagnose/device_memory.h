// How full the devices are, for the findings about batch size and memory.
#pragma once

#include <optional>

#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// The peak memory in use on the fullest device, as a ratio of its memory; nothing where it was not recorded.
std::optional<double> FilledDeviceMemory(const View& view);

}  // namespace fullbore::diagnose
