// How near the kernels of a trace come to what its device can do (record/roofline.h says what the figures
// mean; docs/roofline.md how they are counted).
#pragma once

#include <vector>

#include "explain/roofline/devices.h"
#include "record/roofline.h"
#include "record/step_graph.h"
#include "timeline/device/steps.h"
#include "timeline/device/trace.h"

namespace fullbore::roofline {

// The device that most operations of the trace ran on. Null where it is not in the table.
const Device* DeviceOf(const timeline::DeviceTrace& trace);

// `trace` is finished. `device` may be null: then what was reached is known, but not what is attainable.
record::Roofline Judge(const timeline::DeviceTrace& trace, const std::vector<timeline::StepBounds>& steps,
                       const Device* device);

// The same as part of a recording; nothing where the trace has no shapes or no kernels. The graph of the trace's
// steps, where there is one, is told what its operations had to do.
std::optional<record::Roofline> RooflineOf(const timeline::DeviceTrace& trace,
                                           const std::vector<timeline::StepBounds>& steps,
                                           record::StepGraph* graph = nullptr);

}  // namespace fullbore::roofline
