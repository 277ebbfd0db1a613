// Runs graphs: each node begins when the last of what it waits for has come.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "record/step_graph.h"

namespace fullbore::replay {

// When each node begins, in nanoseconds after the first. Nodes are visited once, in their order: edges only
// go forward.
std::vector<int64_t> Begins(const record::StepGraph& graph);

// The graphs of ranks that meet in collectives; the first one's steps are asked for.
using Ranks = std::span<const record::StepGraph* const>;

// By node, of the first rank. Ranks run beside each other: a collective ends once its last rank has come and it has done
// its own work (duration_ns less wait_ns), however long that rank was waited for when it was recorded. Of a collective
// that only one of the graphs holds, the wait stays as recorded.
struct Times {
  std::vector<int64_t> begins, ends;
};
Times TimesOf(Ranks ranks);

// The mean step, from the first kStepEnd to the last; 0 if there are fewer than two.
double StepNs(const record::StepGraph& graph, const std::vector<int64_t>& begins);

inline double StepNs(const record::StepGraph& graph) { return StepNs(graph, Begins(graph)); }
inline double StepNs(Ranks ranks) { return StepNs(*ranks.front(), TimesOf(ranks).begins); }

}  // namespace fullbore::replay
