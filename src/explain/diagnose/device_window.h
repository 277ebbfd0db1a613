// What the device, or the CPU's operators, did in a few steps of a run, added to what is known of the whole of it.
#pragma once

#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "explain/replay/change/change.h"
#include "record/recording.h"

namespace fullbore::diagnose {

// `trace`: the window as a recording of its own. Its findings about the device take the place of what the run alone
// made of utilisation and the host's clock; its replay becomes the run's. The run knows what a step takes without the
// profiler: the window is judged as it is without (unslowed.h). `run` has steps.
void AddDeviceWindow(const record::DeviceWindow& window, const record::Recording& trace,
                     const std::vector<const replay::Change*>& what_if, Diagnosis& run);

}  // namespace fullbore::diagnose
