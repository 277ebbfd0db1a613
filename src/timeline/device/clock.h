// Devices have clocks of their own, which recorders align with the host's; not all do it well.
#pragma once

#include "timeline/device/trace.h"

namespace fullbore::timeline {

// Where operations begin before their launches, end after the host has waited for them, or leave the device idle long
// after their launches, the device's clock is off. Moves them where one offset explains all of it, else only notices it;
// true if any was moved.
bool AlignDeviceClock(DeviceTrace* trace);

}  // namespace fullbore::timeline
