// Whether a trace can be judged, for readers of its tables: they are right all the same, but may be of half a program.
#pragma once

#include "explain/analyze/rank_trace.h"
#include "explain/fitness/fitness.h"

namespace fullbore::analyze {

fitness::Fitness FitnessOf(const RankTrace& rank);

}  // namespace fullbore::analyze
