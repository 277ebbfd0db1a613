// What a step would take with some changes made: the graphs of its ranks, changed and run again.
#pragma once

#include <string>
#include <vector>

#include "explain/replay/change/change.h"
#include "explain/replay/simulate.h"

namespace fullbore::replay {

// Nanoseconds. `cautious` is the longest step that is likely, `hopeful` the shortest.
struct Prediction {
  double expected_ns = 0;
  double cautious_ns = 0;
  double hopeful_ns = 0;
};

// Other steps than the recorded ones take another time: on the exam's even seeds their means differ by 0.8 % in the
// median, one in five by 3 % or more. So much every range is open for that, as a part of the step.
inline constexpr double kOfOtherSteps = 0.03;

// What is removed altogether takes others with it: what waited for it, or was slowed by it. Of the even seeds of the second
// simulator, steps became up to 8 % shorter than without the removed part alone (docs/accuracy.md).
inline constexpr double kBeyondRemoval = 0.08;

// How far the unchanged graphs are from what was recorded of the first, as a ratio: the floor of every interval.
// Above kRough the figures are rough, above kTooRough there are none.
double ReplayError(Ranks ranks);
inline constexpr double kRough = 0.05, kTooRough = 0.15;

// Why the change can be made on none of the ranks, in the first one's words; nothing if it can on some.
std::optional<std::string> WhyNot(const Change& change, Ranks ranks);

// The graph with those changes made that can be, one after the other, as they are expected to turn out.
record::StepGraph Changed(const record::StepGraph& graph, const std::vector<const Change*>& changes);

// The first rank's step. `changes` are made one after the other, each on the ranks on which it can be made.
Prediction Predict(Ranks ranks, const std::vector<const Change*>& changes);

// What the operations of a class take in a step, in nanoseconds: their sum, now and with a change made.
struct ClassTime {
  record::Lane lane = record::Lane::kOtherCompute;
  double now_ns = 0;
  Prediction then;
};
// The classes by what they take now, of those changes that change each class in its own way; else none.
std::vector<ClassTime> TimesByClass(const record::StepGraph& graph, const Change& change);

// The changes one after the other, each the best that is left given those before it. Those of `not_first`, by their
// ids, begin no ladder.
struct Rung {
  const Change* change = nullptr;
  Prediction step;  // with this change and all before it
};
std::vector<Rung> Ladder(Ranks ranks, const std::vector<std::string>& not_first = {});

// One rank by itself: it waits for others as long as it did.
inline double ReplayError(const record::StepGraph& graph) {
  const record::StepGraph* const one = &graph;
  return ReplayError(Ranks(&one, 1));
}
inline Prediction Predict(const record::StepGraph& graph, const std::vector<const Change*>& changes) {
  const record::StepGraph* const one = &graph;
  return Predict(Ranks(&one, 1), changes);
}
inline std::vector<Rung> Ladder(const record::StepGraph& graph) {
  const record::StepGraph* const one = &graph;
  return Ladder(Ranks(&one, 1));
}

}  // namespace fullbore::replay
