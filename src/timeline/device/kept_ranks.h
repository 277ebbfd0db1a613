// Of a run of many ranks, the few of which more is kept than sums: what their steps waited for (record::StepGraph), to
// be run again, and a step to look at. For one rank that takes up to 30 MB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "record/ranks_together.h"
#include "timeline/device/ranks.h"

namespace fullbore::timeline {

// Two ranks, and those that are run beside each of them: the judged one, and the one whose steps tell what it costs
// where the judged one is late itself. Of so many ranks or fewer, all are kept.
inline constexpr size_t kMostKeptRanks = 2 * record::kMostRanksTogether;

struct RankInBrief {
  int64_t begin_ns = 0, end_ns = 0;  // of its steps, on the common clock; equal where it has none
  size_t in_graph = 0;               // how many of its arrivals are in its graph: the first ones
};

// In order, kMostKeptRanks at most: the first rank with steps (the first of all if none has any), the next one that
// steps meanwhile, and of those that either meets in its graph the ones that wait least there, for which the others
// wait. They are those that the replay would choose among the graphs of all (replay::RanksAround): what it says does
// not depend on what is left out.
std::vector<size_t> RanksToKeep(const std::vector<RankInBrief>& ranks, const RankComparison& comparison);

}  // namespace fullbore::timeline
