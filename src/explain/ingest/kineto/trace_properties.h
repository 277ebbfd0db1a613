// The values of a trace's head and tail: "distributedInfo", "deviceProperties", "baseTimeNanoseconds", ...
#pragma once

#include <string_view>

#include "timeline/device/trace.h"

namespace fullbore::ingest::kineto {

bool WantsProperty(std::string_view key);
void TakeProperty(std::string_view key, std::string_view value, timeline::DeviceTrace& trace);

}  // namespace fullbore::ingest::kineto
