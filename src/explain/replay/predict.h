// What a step would take with some changes made: the graph of its steps, changed and run again.
#pragma once

#include <string>
#include <vector>

#include "explain/replay/change.h"

namespace fullbore::replay {

// Nanoseconds. `cautious` is the longest step that is likely, `hopeful` the shortest.
struct Prediction {
  double expected_ns = 0;
  double cautious_ns = 0;
  double hopeful_ns = 0;
};

// How far the unchanged graph is from what was recorded, as a ratio: the floor of every interval. Above
// kRough the figures are rough, above kTooRough there are none.
double ReplayError(const record::StepGraph& graph);
inline constexpr double kRough = 0.05, kTooRough = 0.15;

// The graph with those changes made that can be, one after the other, as they are expected to turn out.
record::StepGraph Changed(const record::StepGraph& graph, const std::vector<const Change*>& changes);

// `changes` are made one after the other; those that cannot be made there are left out.
Prediction Predict(const record::StepGraph& graph, const std::vector<const Change*>& changes);

// The changes one after the other, each the best that is left given those before it.
struct Rung {
  const Change* change = nullptr;
  Prediction step;  // with this change and all before it
};
std::vector<Rung> Ladder(const record::StepGraph& graph);

}  // namespace fullbore::replay
