#include "explain/replay/simulate.h"

#include <gmock/gmock.h>

#include "explain/replay/testing/made_graph.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::StepGraph;
using record::Work;
using testing::MadeGraph;

TEST(SimulateTest, ANodeBeginsWhenTheLastOfWhatItWaitsForHasCome) {
  MadeGraph made;
  const auto a = made.Add(Work::kHost, 10);
  const auto b = made.Add(Work::kDevice, 50, {{a, Dependency::kLaunch, 4}});
  made.Add(Work::kHost, 5, {{a}, {b, Dependency::kSync, 1}});
  EXPECT_THAT(Begins(made.Graph()), ::testing::ElementsAre(0, 14'000, 65'000));
}

TEST(SimulateTest, AnEdgeMayCountFromTheBeginOfANode) {
  MadeGraph made;
  const auto call = made.Add(Work::kLaunch, 10);
  made.Add(Work::kDevice, 50, {{call, Dependency::kLaunch, 4, true}});
  EXPECT_THAT(Begins(made.Graph()), ::testing::ElementsAre(0, 4'000));
}

TEST(SimulateTest, TheStepIsTheMeanBetweenItsEnds) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto first = made.Add(Work::kHost, 30, {{begin}});
  const auto middle = made.Add(Work::kStepEnd, 0, {{first}});
  const auto second = made.Add(Work::kHost, 50, {{middle}});
  made.Add(Work::kStepEnd, 0, {{second}});
  EXPECT_DOUBLE_EQ(StepNs(made.Graph()), 40'000);
}

// One step: work of the host, and a collective of 100 us that follows it, of which `wait` was waiting.
StepGraph RankThatMeets(int64_t host_us, int64_t wait_us, uint32_t meeting = 1) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto host = made.Add(Work::kHost, host_us, {{begin}});
  const auto reduce = made.Add(Work::kDevice, 100 + wait_us, {{host, Dependency::kLaunch}});
  made[reduce].wait_ns = wait_us * 1000;
  made[reduce].meeting = meeting;
  made.Add(Work::kStepEnd, 0, {{reduce, Dependency::kStream}});
  return made.Graph();
}

double StepUs(std::initializer_list<const StepGraph*> ranks) {
  const std::vector<const StepGraph*> all = ranks;
  return StepNs(Ranks(all)) / 1e3;
}

TEST(TogetherTest, WhatWasRecordedComesOutAgain) {
  const StepGraph early = RankThatMeets(200, 300), late = RankThatMeets(500, 0);
  EXPECT_DOUBLE_EQ(StepUs({&early, &late}), 600);
  EXPECT_DOUBLE_EQ(StepUs({&late, &early}), 600);
}

TEST(TogetherTest, ACollectiveWaitsForTheRankThatIsLastNow) {
  StepGraph early = RankThatMeets(200, 300), late = RankThatMeets(500, 0);
  late.nodes[1].duration_ns = 250'000;
  EXPECT_DOUBLE_EQ(StepUs({&early, &late}), 350);
  late.nodes[1].duration_ns = 50'000;
  EXPECT_DOUBLE_EQ(StepUs({&early, &late}), 300) << "and no longer for the one that was";
}

TEST(TogetherTest, ARankThatBeganLaterComesLater) {
  StepGraph early = RankThatMeets(200, 300), late = RankThatMeets(200, 0);
  late.begin_ns = 300'000;
  EXPECT_DOUBLE_EQ(StepUs({&early, &late}), 600);
}

TEST(TogetherTest, AloneARankWaitsAsLongAsItDid) {
  const StepGraph early = RankThatMeets(200, 300), other = RankThatMeets(900, 0, 2);
  EXPECT_DOUBLE_EQ(StepUs({&early}), 600);
  EXPECT_DOUBLE_EQ(StepUs({&early, &other}), 600) << "the other one meets somebody else";
}

TEST(TogetherTest, RanksThatMeetCrosswiseDoNotHang) {
  const auto rank = [](uint32_t first, uint32_t second) {
    MadeGraph made;
    const auto begin = made.Add(Work::kStepEnd, 0);
    const auto one = made.Add(Work::kDevice, 10, {{begin}});
    const auto other = made.Add(Work::kDevice, 10, {{one}});
    made[one].meeting = first;
    made[other].meeting = second;
    made.Add(Work::kStepEnd, 0, {{other}});
    return made.Graph();
  };
  const StepGraph one = rank(1, 2), other = rank(2, 1);
  EXPECT_DOUBLE_EQ(StepUs({&one, &other}), 20);
}

TEST(SimulateTest, WithoutTwoEndsThereIsNoStep) {
  MadeGraph made;
  made.Add(Work::kStepEnd, 0);
  EXPECT_DOUBLE_EQ(StepNs(made.Graph()), 0);
}

}  // namespace
}  // namespace fullbore::replay
