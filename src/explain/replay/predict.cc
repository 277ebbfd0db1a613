#include "explain/replay/predict.h"

#include <algorithm>
#include <cmath>

#include "explain/replay/simulate.h"

namespace fullbore::replay {
namespace {

using record::StepGraph;

// A rung is worth a line if it is sure to gain this much.
constexpr double kWorthARung = 1.01;
// Steps that differ by less than this are as good, and then the change that costs less goes first.
constexpr double kAsGood = 1.15;
// The changed program differs from the simulated one (caches, clocks, what shares the memory) by about this
// part of what a change takes away; the exam's even seeds say how much (docs/accuracy.md).
constexpr double kOfChange = 0.1;
// Other steps than the recorded ones take another time: on the exam's even seeds their means differ by 0.8 % in the
// median, one in five by 3 % or more.
constexpr double kOfStep = 0.02;

// Makes the changes, and returns the least time of a step that they leave (Change::Apply).
double Make(const std::vector<const Change*>& changes, Outlook outlook, StepGraph& graph) {
  double floor_ns = 0;
  for (const Change* change : changes) {
    if (!change->WhyNot(graph)) floor_ns = std::max(floor_ns, change->Apply(outlook, graph));
  }
  return floor_ns;
}

double After(const StepGraph& graph, const std::vector<const Change*>& changes, Outlook outlook) {
  StepGraph changed = graph;
  const double floor_ns = Make(changes, outlook, changed);
  return std::max(floor_ns, StepNs(changed));
}

// By what is sure to be gained, and by what it costs.
bool IsBetter(const Change& change, const Prediction& step, const Change* best, const Prediction& best_step) {
  if (best == nullptr) return true;
  const double ratio = step.cautious_ns / best_step.cautious_ns;
  if (change.cost() == best->cost()) return ratio < 1;
  return change.cost() < best->cost() ? ratio < kAsGood : ratio * kAsGood < 1;
}

}  // namespace

double ReplayError(const StepGraph& graph) {
  return graph.recorded_step_ns > 0 ? std::abs(StepNs(graph) / graph.recorded_step_ns - 1) : 0;
}

StepGraph Changed(const StepGraph& graph, const std::vector<const Change*>& changes) {
  StepGraph changed = graph;
  Make(changes, Outlook::kExpected, changed);
  return changed;
}

Prediction Predict(const StepGraph& graph, const std::vector<const Change*>& changes) {
  const double now_ns = StepNs(graph), error = ReplayError(graph);
  Prediction step{After(graph, changes, Outlook::kExpected), After(graph, changes, Outlook::kCautious),
                  After(graph, changes, Outlook::kHopeful)};
  const double slack_ns = kOfChange * std::abs(now_ns - step.expected_ns) + kOfStep * step.expected_ns;
  // Outlooks of different changes need not agree on what is good: the range holds all three.
  const auto [least, most] = std::minmax({step.expected_ns, step.cautious_ns, step.hopeful_ns});
  step.cautious_ns = (most + slack_ns) * (1 + error);
  step.hopeful_ns = std::max(0.0, (least - slack_ns) * (1 - error));
  return step;
}

std::vector<Rung> Ladder(const StepGraph& graph) {
  std::vector<Rung> ladder;
  std::vector<const Change*> made;
  double sure_ns = StepNs(graph);
  for (;;) {
    const Change* best = nullptr;
    Prediction best_step;
    for (const Change* change : AllChanges()) {
      if (std::find(made.begin(), made.end(), change) != made.end() || change->WhyNot(graph)) continue;
      std::vector<const Change*> with = made;
      with.push_back(change);
      const Prediction step = Predict(graph, with);
      if (step.cautious_ns * kWorthARung > sure_ns || !IsBetter(*change, step, best, best_step)) continue;
      best = change;
      best_step = step;
    }
    if (best == nullptr) return ladder;
    made.push_back(best);
    sure_ns = best_step.cautious_ns;
    ladder.push_back({best, best_step});
  }
}

}  // namespace fullbore::replay
