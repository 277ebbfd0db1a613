#include "explain/replay/observer.h"

#include <gmock/gmock.h>

#include "explain/replay/change/changes.h"
#include "explain/replay/predict.h"
#include "explain/replay/simulate.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::StepGraph;
using record::Work;
using testing::MadeGraph;

// A step of 100 kernels of 2 us, each 30 us of the host after the one before, which notes eight operators meanwhile.
StepGraph Launching(double operator_start_ns) {
  MadeGraph made;
  auto last = made.Add(Work::kStepEnd, 0);
  for (int i = 0; i < 100; ++i) {
    const auto host = made.Add(Work::kHost, 30, {{last}});
    made[host].events = 8;
    last = made.Add(Work::kLaunch, 5, {{host}});
    made[last].events = 1;
    made.Add(Work::kDevice, 2, {{last, Dependency::kLaunch, 5, true}});
  }
  made.Add(Work::kStepEnd, 0, {{last}});
  StepGraph graph = made.Graph(3500);
  graph.operator_start_ns = operator_start_ns;
  return graph;
}

double WithoutUs(const StepGraph& graph, Outlook outlook) { return StepNs(Unwatched(graph, outlook)) / 1e3; }

TEST(ObserverTest, TheHostIsFasterByWhatItsEventsCost) {
  const StepGraph graph = Launching(1000);
  EXPECT_DOUBLE_EQ(StepNs(graph) / 1e3, 3500);
  EXPECT_DOUBLE_EQ(WithoutUs(graph, Outlook::kCautious), 100 * (35 - 0.3 * 9));
  EXPECT_DOUBLE_EQ(WithoutUs(graph, Outlook::kExpected), 100 * (35 - 1.6 * 9));
}

TEST(ObserverTest, SomethingIsLeftOfTheHostHoweverMuchItNoted) {
  EXPECT_DOUBLE_EQ(WithoutUs(Launching(1e6), Outlook::kExpected), 0.4 * 3500);
}

TEST(ObserverTest, WhereNoOperatorWasSeenNothingIsKnown) {
  EXPECT_FALSE(IsWatched(Launching(0)));
  EXPECT_DOUBLE_EQ(WithoutUs(Launching(0), Outlook::kHopeful), 3500);
}

TEST(ObserverTest, AChangeOfTheHostGainsLessThanTheRecordingShows) {
  const auto gain = [](const StepGraph& graph) {
    return StepNs(graph) / Predict(graph, {CudaGraphs()}).expected_ns;
  };
  EXPECT_LT(gain(Launching(1000)), 0.9 * gain(Launching(0)));
}

TEST(ObserverTest, WhatTheProfilerCostIsKnownRoughlyAndSoIsTheGain) {
  const auto width = [](const StepGraph& graph) {
    const Prediction step = Predict(graph, {CudaGraphs()});
    return step.cautious_ns / step.hopeful_ns;
  };
  EXPECT_GT(width(Launching(1000)), 1.1 * width(Launching(0)));
}

TEST(ObserverTest, WhereTheTrueStepIsKnownTheEventsCostWhatIsMissing) {
  const StepGraph without = UnwatchedTo(Launching(1000), 2'000'000);
  EXPECT_NEAR(StepNs(without), 2'000'000, 200);
  EXPECT_FALSE(IsWatched(without)) << "nothing is left to be guessed";
  EXPECT_NEAR(ReplayError(without), 0, 1e-3);
  EXPECT_DOUBLE_EQ(StepNs(UnwatchedTo(Launching(1000), 4'000'000)) / 1e3, 3500) << "it was not slowed";
}

TEST(ObserverTest, WhatTheEventsCannotExplainIsAnErrorOfTheReplay) {
  const StepGraph without = UnwatchedTo(Launching(1000), 1'000'000);
  EXPECT_NEAR(StepNs(without) / 1e3, 0.4 * 3500, 1);
  EXPECT_NEAR(ReplayError(without), 0.4, 1e-3);
}

}  // namespace
}  // namespace fullbore::replay
