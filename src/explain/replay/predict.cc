#include "explain/replay/predict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "explain/replay/observer.h"

namespace fullbore::replay {
namespace {

using record::StepGraph;

// A rung is worth a line if it is sure to gain this much.
constexpr double kWorthARung = 1.01;
// Steps that differ by less than this are as good, and then the change that costs less goes first.
constexpr double kAsGood = 1.15;
// The changed program differs from the simulated one (caches, clocks, what shares the memory) by about this
// part of what a change takes away; the even seeds of both simulators say how much (docs/accuracy.md).
constexpr double kOfChange = 0.2;

constexpr double kOfWhatIsLeft = 0.2;

// How much farther from what is expected the truth lies than all these reasons allow for, as a power of the ratio: of the
// even seeds of the second simulator 95 % of the ranges held without it, and of the odd ones, whose programs nothing was
// learned from, 87 % (docs/accuracy.md).
constexpr double kUnforeseen = 1.1;

double Beyond(double ns, double expected_ns) {
  return expected_ns > 0 && ns > 0 ? expected_ns * std::pow(ns / expected_ns, kUnforeseen) : ns;
}

// Makes the change if it can be made, and returns the least time of a step that it leaves (Change::Apply).
double Make(const Change* change, Outlook outlook, StepGraph& graph) {
  return change->WhyNot(graph) ? 0 : change->Apply(outlook, graph);
}
// On every rank: who has the longest step keeps the others waiting.
double Make(const Change* change, Outlook outlook, std::vector<StepGraph>& graphs) {
  double floor_ns = 0;
  for (StepGraph& graph : graphs) floor_ns = std::max(floor_ns, Make(change, outlook, graph));
  return floor_ns;
}

double StepNsOf(const std::vector<StepGraph>& graphs) {
  std::vector<const StepGraph*> ranks;
  for (const StepGraph& graph : graphs) ranks.push_back(&graph);
  return StepNs(Ranks(ranks));
}

// Changes made one after the other. How far each may turn out better or worse than expected is its own affair: that
// all turn out at their best is as unlikely as that all fail. So their deviations add as independent ones do, by their
// squares, as ratios.
//
// Each is made of the steps as they are without the profiler, of which it is known only roughly what it cost: that is
// one more deviation, common to all changes. Times are those of the recorded steps: what they become is a ratio.
class Course {
 public:
  explicit Course(Ranks ranks)
      : recorded_ns_(StepNs(ranks)),
        error_(ReplayError(ranks)),
        expected_ns_(recorded_ns_),
        promised_ns_(recorded_ns_) {
    const bool watched = std::ranges::any_of(ranks, [](const StepGraph* graph) { return IsWatched(*graph); });
    for (const Outlook cost : {Outlook::kExpected, Outlook::kCautious, Outlook::kHopeful}) {
      if (cost != Outlook::kExpected && !watched) break;
      Steps& steps = without_.emplace_back();
      for (const StepGraph* graph : ranks)
        steps.changed.push_back(watched ? Unwatched(*graph, cost) : *graph);
      steps.now_ns = StepNsOf(steps.changed);
    }
  }

  // What one more change would make of the step.
  struct Next {
    const Change* change = nullptr;
    double expected_ns = 0;
    double better = 0, worse = 0;                    // squared logarithms, of all changes so far
    double observer_better = 0, observer_worse = 0;  // the same, of what the profiler cost
    double floor_ns = 0;  // what no step becomes shorter than, were it these ones; 0 for none
  };
  Next Look(const Change* change) const {
    const double expected = After(without_.front(), change, Outlook::kExpected);
    // Outlooks of one change need not agree on what is good: the range holds all three.
    const auto [least, most] = std::minmax({expected, After(without_.front(), change, Outlook::kCautious),
                                            After(without_.front(), change, Outlook::kHopeful)});
    double observed_least = expected, observed_most = expected;
    for (size_t i = 1; i < without_.size(); ++i) {
      const double after = After(without_[i], change, Outlook::kExpected);
      observed_least = std::min(observed_least, after);
      observed_most = std::max(observed_most, after);
    }
    const auto squared = [](double ratio) { return std::pow(std::log(ratio), 2); };
    // Without all of what the change is about, the step takes this part of what it took before.
    const double left = expected_ns_ > 0 ? std::min(1.0, least / expected_ns_) : 1;
    return {change,
            expected,
            better_ + (least > 0 ? squared(expected / least) : 0),
            worse_ + (expected > 0 ? squared(most / expected) : 0),
            observed_least > 0 ? squared(expected / observed_least) : 0,
            expected > 0 ? squared(observed_most / expected) : 0,
            change->removes() ? promised_ns_ * left : 0};
  }

  void Take(const Next& next) {
    for (Steps& steps : without_)
      steps.floor_ns = std::max(steps.floor_ns, Make(next.change, Outlook::kExpected, steps.changed));
    expected_ns_ = next.expected_ns;
    better_ = next.better;
    worse_ = next.worse;
    observer_better_ = next.observer_better;
    observer_worse_ = next.observer_worse;
    promised_ns_ = next.floor_ns;
    made_.push_back(next.change);
  }

  bool Has(const Change* change) const {
    return std::find(made_.begin(), made_.end(), change) != made_.end();
  }
  Prediction step() const {
    return StepWith(
        {nullptr, expected_ns_, better_, worse_, observer_better_, observer_worse_, promised_ns_});
  }
  Prediction StepWith(const Next& next) const {
    const double changed_ns = kOfChange * std::abs(recorded_ns_ - next.expected_ns);
    const double others_ns = kOfOtherSteps * next.expected_ns;
    const double slack_ns = changed_ns + others_ns;
    const double most = next.expected_ns * std::exp(std::sqrt(next.worse + next.observer_worse));
    const double least = next.expected_ns * std::exp(-std::sqrt(next.better + next.observer_better));
    // What is left of the step is not what the change takes away: of that, little goes with it.
    const double hopeful_slack_ns = std::min(changed_ns, kOfWhatIsLeft * next.expected_ns) + others_ns;
    return {next.expected_ns, Beyond((most + slack_ns) * (1 + error_), next.expected_ns),
            std::max(FloorOf(next), Beyond((least - hopeful_slack_ns) * (1 - error_), next.expected_ns))};
  }

 private:
  // Of a change that removes nothing, nothing follows.
  double FloorOf(const Next& next) const {
    return next.floor_ns < recorded_ns_ ? next.floor_ns * (1 - kBeyondRemoval) : next.floor_ns;
  }

  // The ranks' steps, were the profiler's cost this.
  struct Steps {
    std::vector<StepGraph> changed;  // as expected
    double now_ns = 0;               // as they are
    double floor_ns = 0;
  };
  double After(const Steps& steps, const Change* change, Outlook outlook) const {
    std::vector<StepGraph> changed = steps.changed;
    const double floor_ns = Make(change, outlook, changed);
    const double after_ns = std::max({steps.floor_ns, floor_ns, StepNsOf(changed)});
    return steps.now_ns > 0 ? after_ns / steps.now_ns * recorded_ns_ : after_ns;
  }

  std::vector<Steps> without_;  // as expected first
  double recorded_ns_, error_, expected_ns_;
  double promised_ns_;  // Next::floor_ns of the changes made
  double better_ = 0, worse_ = 0, observer_better_ = 0, observer_worse_ = 0;
  std::vector<const Change*> made_;
};

// By what is sure to be gained, and by what it costs.
bool IsBetter(const Change& change, const Prediction& step, const Change* best, const Prediction& best_step) {
  if (best == nullptr) return true;
  const double ratio = step.cautious_ns / best_step.cautious_ns;
  if (change.cost() == best->cost()) return ratio < 1;
  return change.cost() < best->cost() ? ratio < kAsGood : ratio * kAsGood < 1;
}

}  // namespace

double ReplayError(Ranks ranks) {
  const double recorded_ns = ranks.front()->recorded_step_ns;
  return recorded_ns > 0 ? std::abs(StepNs(ranks) / recorded_ns - 1) : 0;
}

std::optional<std::string> WhyNot(const Change& change, Ranks ranks) {
  auto why = change.WhyNot(*ranks.front());
  if (!why || !change.helps_others()) return why;
  const bool elsewhere = std::any_of(ranks.begin() + 1, ranks.end(),
                                     [&](const StepGraph* graph) { return !change.WhyNot(*graph); });
  return elsewhere ? std::nullopt : why;
}

StepGraph Changed(const StepGraph& graph, const std::vector<const Change*>& changes) {
  StepGraph changed = graph;
  for (const Change* change : changes) Make(change, Outlook::kExpected, changed);
  return changed;
}

Prediction Predict(Ranks ranks, const std::vector<const Change*>& changes) {
  Course course(ranks);
  for (const Change* change : changes) course.Take(course.Look(change));
  return course.step();
}

std::vector<ClassTime> TimesByClass(const StepGraph& graph, const Change& change) {
  std::vector<ClassTime> times;
  if (!change.shows_classes() || change.WhyNot(graph)) return times;
  const auto of_class = [](const StepGraph& of, int lane) {
    return PerStepNs(of, [lane](const StepGraph::Node& node) {
      return node.work == record::Work::kDevice && static_cast<int>(node.lane) == lane;
    });
  };
  const auto with = [&](Outlook outlook) {
    StepGraph changed = graph;
    change.Apply(outlook, changed);
    return changed;
  };
  const StepGraph expected = with(Outlook::kExpected), cautious = with(Outlook::kCautious),
                  hopeful = with(Outlook::kHopeful);
  for (int lane = 0; lane < record::kLaneCount; ++lane) {
    const double now_ns = of_class(graph, lane);
    if (now_ns <= 0) continue;
    times.push_back({static_cast<record::Lane>(lane),
                     now_ns,
                     {of_class(expected, lane), of_class(cautious, lane), of_class(hopeful, lane)}});
  }
  std::ranges::stable_sort(times, std::greater{}, &ClassTime::now_ns);
  return times;
}

std::vector<Rung> Ladder(Ranks ranks, const std::vector<std::string>& not_first) {
  std::vector<Rung> ladder;
  Course course(ranks);
  double sure_ns = StepNs(ranks);
  for (;;) {
    Course::Next best;
    Prediction best_step;
    for (const Change* change : AllChanges()) {
      if (course.Has(change) || WhyNot(*change, ranks)) continue;
      if (ladder.empty() && std::ranges::find(not_first, change->id()) != not_first.end()) continue;
      const Course::Next next = course.Look(change);
      const Prediction step = course.StepWith(next);
      if (step.cautious_ns * kWorthARung > sure_ns || !IsBetter(*change, step, best.change, best_step))
        continue;
      best = next;
      best_step = step;
    }
    if (best.change == nullptr) return ladder;
    course.Take(best);
    sure_ns = best_step.cautious_ns;
    ladder.push_back({best.change, best_step});
  }
}

}  // namespace fullbore::replay
