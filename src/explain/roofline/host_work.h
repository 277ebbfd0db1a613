// What a training that computes on the CPU does without need, as far as its operators' shapes show it.
#pragma once

#include <optional>
#include <vector>

#include "record/host_work.h"
#include "timeline/device/steps.h"
#include "timeline/device/trace.h"

namespace fullbore::roofline {

// Of the thread that steps. Nothing without shapes.
std::optional<record::HostWork> HostWorkOf(const timeline::DeviceTrace& trace,
                                           const std::vector<timeline::StepBounds>& steps);

}  // namespace fullbore::roofline
