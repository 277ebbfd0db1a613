// What must hold for every graph, tried on random ones: programs of a host, a device with two streams, copies, waits
// and collectives, put together without any plan.
#include <gmock/gmock.h>

#include <random>

#include "explain/replay/predict.h"
#include "explain/replay/simulate.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::Lane;
using record::Phase;
using record::StepGraph;
using record::Work;
using testing::MadeGraph;

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  StepGraph Graph() {
    host_ = made_.Add(Work::kStepEnd, 0);
    stream_[0] = stream_[1] = host_;
    const int steps = Upto(4) + 1;
    for (int step = 0; step < steps; ++step) {
      const int items = Upto(30) + 1;
      for (int i = 0; i < items; ++i) AddSomething();
      made_.Add(Work::kStepEnd, 0,
                {{stream_[0], Dependency::kStream}, {stream_[1], Dependency::kStream}, {host_}});
    }
    StepGraph graph = made_.Graph();
    graph.recorded_step_ns = StepNs(graph);
    return graph;
  }

 private:
  int Upto(int most) { return std::uniform_int_distribution<int>(0, most - 1)(random_); }

  void AddSomething() {
    constexpr Work kHostWork[] = {Work::kHost, Work::kHost,       Work::kHost,      Work::kLoader,
                                  Work::kAway, Work::kCheckpoint, Work::kValidation};
    host_ = made_.Add(kHostWork[Upto(7)], Upto(200), {{host_}});
    made_[host_].phase = static_cast<Phase>(Upto(4));
    host_ = made_.Add(Work::kLaunch, Upto(20), {{host_}});
    made_[host_].phase = static_cast<Phase>(Upto(4));
    uint32_t& stream = stream_[Upto(2)];
    const uint32_t other = stream_[Upto(2)];
    stream = made_.Add(Work::kDevice, Upto(300) + 1,
                       {{stream, Dependency::kStream, Upto(3)},
                        {host_, Dependency::kLaunch, Upto(8), true},
                        {Upto(5) == 0 ? other : stream, Dependency::kAssumed, Upto(3)}});
    auto& node = made_[stream];
    node.lane = static_cast<Lane>(Upto(record::kLaneCount));
    node.phase = static_cast<Phase>(Upto(4));
    node.bytes = Upto(1 << 24);
    if (node.lane == Lane::kComm) node.wait_ns = node.duration_ns / (Upto(3) + 1);
    if (Upto(4) != 0) return;
    const Lane lane = node.lane;
    const auto call = made_.Add(Work::kBlockingCall, Upto(5), {{host_}});
    host_ = made_.Add(Work::kReturn, 0, {{call}, {stream, Dependency::kSync, Upto(10)}});
    made_[host_].lane = lane;
  }

  std::mt19937 random_;
  MadeGraph made_;
  uint32_t host_ = 0;
  uint32_t stream_[2] = {};
};

class RandomGraphTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  const StepGraph graph_ = RandomProgram(GetParam()).Graph();
};

// The steps with everything gone that the change makes shorter or no longer waits for.
double WithoutWhatChanges(const StepGraph& graph, const Change& change) {
  StepGraph changed = graph;
  const double floor_ns = change.Apply(Outlook::kHopeful, changed);
  for (size_t i = 0; i < changed.nodes.size(); ++i) {
    if (changed.nodes[i].duration_ns < graph.nodes[i].duration_ns) changed.nodes[i].duration_ns = 0;
  }
  for (size_t e = 0; e < changed.edges.size(); ++e) {
    if (changed.edges[e].lag_ns < graph.edges[e].lag_ns) Drop(changed.edges[e]);
  }
  return std::max(floor_ns, StepNs(changed));
}

TEST_P(RandomGraphTest, NoChangePromisesMoreThanTheRemovalOfAllThatItTouches) {
  for (const Change* change : AllChanges()) {
    if (change->WhyNot(graph_)) continue;
    const Prediction step = Predict(graph_, {change});
    const double least_ns = change->removes() ? step.hopeful_ns / (1 - kBeyondRemoval) : step.expected_ns;
    EXPECT_GE(least_ns, WithoutWhatChanges(graph_, *change) - 1) << change->id();
  }
}

// What overlaps takes multiprocessors and bandwidth from each other, each time.
double SlowedBy(const Change& change) { return change.id() == "overlap" ? 1.01 : 1; }

TEST_P(RandomGraphTest, NoChangeMakesTheStepsLonger) {
  for (const Change* change : AllChanges()) {
    if (change->WhyNot(graph_)) continue;
    StepGraph changed = graph_;
    change->Apply(Outlook::kExpected, changed);
    // The launch of a graph takes longer than that of the kernel which it begins with.
    const double launch_ns = change->id() == "graphs" ? 20'000 : 0;
    EXPECT_LE(StepNs(changed), SlowedBy(*change) * StepNs(graph_) + launch_ns) << change->id();
  }
}

TEST_P(RandomGraphTest, TheRangeHoldsTheExpectedStep) {
  for (const Change* change : AllChanges()) {
    const Prediction step = Predict(graph_, {change});
    EXPECT_LE(step.hopeful_ns, step.expected_ns) << change->id();
    EXPECT_GE(step.cautious_ns, step.expected_ns) << change->id();
  }
}

TEST_P(RandomGraphTest, TheLadderOnlyDescends) {
  double last = StepNs(graph_);
  for (const Rung& rung : Ladder(graph_)) {
    EXPECT_LT(rung.step.cautious_ns, last) << rung.change->id();
    last = rung.step.cautious_ns;
  }
}

TEST_P(RandomGraphTest, AChangeMadeTwiceIsNoWorseThanOnce) {
  for (const Change* change : AllChanges()) {
    if (change->WhyNot(graph_)) continue;
    StepGraph changed = graph_;
    change->Apply(Outlook::kExpected, changed);
    const double once = StepNs(changed);
    change->Apply(Outlook::kExpected, changed);
    EXPECT_LE(StepNs(changed), SlowedBy(*change) * once) << change->id();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphTest, ::testing::Range(0U, 60U));

}  // namespace
}  // namespace fullbore::replay
