// Counts of what limits the conclusions that may be drawn from a trace (record/noticed.h): launches whose operations
// were not recorded, calls that found everything cold.
#pragma once

#include <string_view>

#include "timeline/device/trace.h"

namespace fullbore::timeline {

// cudaStreamBeginCapture, hipStreamBeginCapture: what is launched until the end of the capture does not run.
bool BeginsCapture(std::string_view call);

// Of what is told from calls and operations; steps are noticed where they are found. Once operations are tied.
void Notice(DeviceTrace* trace);

}  // namespace fullbore::timeline
