// Where the time of a training goes that computes on the CPU: the operators that its steps called.
#pragma once

#include <string_view>
#include <vector>

#include "record/recording.h"
#include "timeline/device/steps.h"
#include "timeline/device/trace.h"

namespace fullbore::roofline {

// The outermost operators of all threads, by time, largest first: what the user's code called, and what autograd
// called in the backward pass. Only what began inside one of `steps`. An operator's arithmetic is that of all it
// called, where the trace has their shapes.
std::vector<record::OperatorTime> HostOperators(const timeline::DeviceTrace& trace,
                                                const std::vector<timeline::StepBounds>& steps);

// The name of an operator, or of the node of autograd that the backward pass evaluates.
std::string_view ShortName(std::string_view name);

// Whether one of the steps has begun and not ended by then.
bool IsInside(const std::vector<timeline::StepBounds>& steps, int64_t at_ns);

}  // namespace fullbore::roofline
