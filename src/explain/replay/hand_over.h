// What it costs to hand a batch over from a worker process to the training.
#pragma once

#include "explain/replay/change/change.h"

namespace fullbore::replay {

// Of a live run on a CPU: pickled, copied into shared memory, mapped by the training; half on each side. Measured with
// the planted causes: docs/measurements.md says how and when.
inline constexpr double kHandOverNs = 1.0e6, kHandOverNsPerByte = 1.0;

// The training thread's part: taking a batch that is ready, of which so many bytes are pageable.
double ReceiveNs(Outlook outlook, double pageable_bytes);
// What of it comes later than next(): where the training touches the batch first, and where it lets go of it.
double TouchNs(Outlook outlook, double pageable_bytes);

// What is copied to the device in a step is what was loaded for it; 0 where all of it is pinned.
double PerStepPageableBytes(const record::StepGraph& graph);

bool IsLoader(const record::StepGraph::Node& node);

}  // namespace fullbore::replay
