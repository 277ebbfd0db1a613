#include "explain/diagnose/unslowed.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::kMs;

constexpr double kStepNs = 120.0 * kMs;

record::Step FirstOf(const ARun& trace, double step_ns) {
  return Unslowed(trace, step_ns).stages.front().ranks.front().steps.front();
}

TEST(UnslowedTest, TheDeviceWaitsLessForTheHostAndDoesTheSame) {
  const record::Step step =
      FirstOf(ATrace().InEachStep(Share::kLaunch, 30).InEachStep(Share::kDataWait, 10), kStepNs);
  EXPECT_EQ(step.wall_ns, 120 * kMs);
  EXPECT_EQ(step.share_ns[Index(Share::kLaunch)], 10 * kMs);
  EXPECT_EQ(step.share_ns[Index(Share::kCompute)], 100 * kMs);
  EXPECT_EQ(step.share_ns[Index(Share::kDataWait)], 10 * kMs);
}

TEST(UnslowedTest, WhatWaitingCannotExplainStays) {
  const record::Step step =
      FirstOf(ATrace().InEachStep(Share::kLaunch, 5).InEachStep(Share::kSync, 5), 50.0 * kMs);
  EXPECT_EQ(step.share_ns[Index(Share::kLaunch)], 0);
  EXPECT_EQ(step.share_ns[Index(Share::kSync)], 0);
  EXPECT_EQ(step.wall_ns, 100 * kMs);
}

TEST(UnslowedTest, ALongStepStaysLonger) {
  ARun trace = ATrace().InEachStep(Share::kLaunch, 50).InStep(0, Share::kLaunch, 150);
  EXPECT_EQ(FirstOf(trace, 75.0 * kMs).wall_ns, 150 * kMs) << "all steps by half";
}

TEST(UnslowedTest, SaysByHowMuchTheyWereSlowed) {
  const auto noticed = [](const ARun& trace) {
    return Unslowed(trace, kStepNs).stages.front().ranks.front().noticed;
  };
  EXPECT_DOUBLE_EQ(*noticed(ATrace().InEachStep(Share::kLaunch, 80)).slowed, 1.5);
  EXPECT_FALSE(noticed(ATrace()).slowed) << "they are shorter";
  EXPECT_FALSE(noticed(ATraining().InEachStep(Share::kForward, 80)).slowed) << "no device was recorded";
}

TEST(UnslowedTest, AGraphHasNoEventsLeftToBeGuessed) {
  ARun trace = ATrace().InEachStep(Share::kLaunch, 80);
  record::StepGraph graph;  // a step of one node
  graph.nodes.resize(2);
  graph.nodes[0].work = graph.nodes[1].work = record::Work::kStepEnd;
  graph.nodes[0].events = 7;
  graph.first_edge = {0, 0, 0};
  graph.step_ends = {0, 1};
  trace.rank().graph = graph;
  for (const double step_ns : {kStepNs, 500.0 * kMs}) {
    const auto without = Unslowed(trace, step_ns).stages.front().ranks.front().graph;
    EXPECT_EQ(without->nodes[0].events, 0) << step_ns;
  }
  EXPECT_EQ(Unslowed(trace, 0).stages.front().ranks.front().graph->nodes[0].events, 7) << "nothing is known";
}

}  // namespace
}  // namespace fullbore::diagnose
