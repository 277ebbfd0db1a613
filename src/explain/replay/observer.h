// The profiler that recorded the steps was part of them: the host paid for each operator and each call that it noted.
// What a change gains is asked of the program without it.
#pragma once

#include "explain/replay/change/change.h"

namespace fullbore::replay {

// Whether the recording shows what its events cost.
bool IsWatched(const record::StepGraph& graph);

// The host does what it did without noting it. Cautious: it hardly cost anything.
record::StepGraph Unwatched(const record::StepGraph& graph, Outlook outlook);

// The same where it is known what a step takes without the profiler: as much is taken from each event as makes the graph's
// steps so long. What that cannot explain remains as ReplayError().
record::StepGraph UnwatchedTo(const record::StepGraph& graph, double step_ns);

}  // namespace fullbore::replay
