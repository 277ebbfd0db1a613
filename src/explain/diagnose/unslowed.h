// Steps that were recorded under a profiler, as they are without it, where it is known what one takes then.
#pragma once

#include "record/recording.h"

namespace fullbore::diagnose {

// Of a trace. The device does the same, and waits for the host for as much less as the recorded steps are longer than
// `step_ns` in the median; so does the graph of what waited for what. What is longer than that waiting can explain, and
// recordings without a device, stay as they are.
record::Recording Unslowed(record::Recording trace, double step_ns);

}  // namespace fullbore::diagnose
