// A profiler that runs in cycles (torch.profiler.schedule(repeat=2)) writes a recording for each: they are stretches of
// one rank, not ranks.
#pragma once

#include "record/recording.h"

namespace fullbore::timeline {

// Adds what was recorded of the same process later on. Both count on the same clock. Time between them belongs to
// neither; the graph, the step that is shown and the roofline stay those of the first.
void Append(record::RankInfo next, record::RankInfo* info);

}  // namespace fullbore::timeline
