// Steps of a trace without device activity: the shares are those of the training thread.
#pragma once

#include <vector>

#include "record/recording.h"
#include "timeline/device/steps.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

std::vector<record::Step> StepsOfHost(const DeviceTrace& trace, const std::vector<StepBounds>& bounds);

}  // namespace fullbore::timeline
