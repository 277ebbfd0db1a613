// Runs a graph: each node begins when the last of what it waits for has come.
#pragma once

#include <cstdint>
#include <vector>

#include "record/step_graph.h"

namespace fullbore::replay {

// When each node begins, in nanoseconds after the first. Nodes are visited once, in their order: edges only
// go forward.
std::vector<int64_t> Begins(const record::StepGraph& graph);

// The mean step, from the first kStepEnd to the last; 0 if there are fewer than two.
double StepNs(const record::StepGraph& graph, const std::vector<int64_t>& begins);

inline double StepNs(const record::StepGraph& graph) { return StepNs(graph, Begins(graph)); }

}  // namespace fullbore::replay
