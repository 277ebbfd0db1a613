#include "explain/replay/ranks.h"

#include <gmock/gmock.h>

#include "explain/replay/predict.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::StepGraph;
using record::Work;
using ::testing::ElementsAre;
using testing::MadeGraph;

// A collective of 100 us, 200 us after the begin, of which `wait` was waiting.
StepGraph Rank(uint32_t meeting, int64_t wait_us, int64_t recorded_us = 300) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto host = made.Add(Work::kHost, 200, {{begin}});
  const auto reduce = made.Add(Work::kDevice, 100, {{host, Dependency::kLaunch}});
  made[reduce].meeting = meeting;
  made[reduce].wait_ns = wait_us * 1000;
  made.Add(Work::kStepEnd, 0, {{reduce, Dependency::kStream}});
  return made.Graph(recorded_us);
}

TEST(RanksAroundTest, AreThoseThatItMeetsTheMostWaitedForFirst) {
  const StepGraph one = Rank(1, 0), second = Rank(1, 2), third = Rank(1, 1), stranger = Rank(2, 0),
                  nobody = Rank(0, 0);
  EXPECT_THAT(RanksAround(one, {&one, &second, &third, &stranger, &nobody}),
              ElementsAre(&one, &third, &second));
}

TEST(RanksAroundTest, OfManyOnlySomeAreRunBesideIt) {
  const StepGraph one = Rank(1, 0);
  const std::vector<StepGraph> many(20, Rank(1, 0));
  std::vector<const StepGraph*> others;
  for (const StepGraph& graph : many) others.push_back(&graph);
  EXPECT_EQ(RanksAround(one, others).size(), 8U);
}

TEST(RanksAroundTest, ItIsAloneWhereTogetherTheyDoNotDoWhatWasRecorded) {
  StepGraph one = Rank(1, 0), other = Rank(1, 0);
  other.begin_ns = 5'000'000;  // it would come five milliseconds late, and nobody waited for it
  EXPECT_THAT(RanksAround(one, {&one, &other}), ElementsAre(&one));
}

// A step of two ranks that load inline, for 100 and for 700 us, and then meet; 50 us are left to do.
StepGraph Loading(int64_t load_us, int64_t wait_us) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto loaded = made.Add(Work::kLoader, load_us, {{begin}});
  const auto reduce = made.Add(Work::kDevice, 50 + wait_us, {{loaded, Dependency::kLaunch}});
  made[reduce].meeting = 1;
  made[reduce].wait_ns = wait_us * 1000;
  made[reduce].lane = record::Lane::kComm;
  made.Add(Work::kStepEnd, 0, {{reduce, Dependency::kStream}});
  return made.Graph(750);
}

TEST(PredictTest, WorkersOnAllRanksEndTheWaitForTheSlowestLoader) {
  const StepGraph quick = Loading(100, 600), slow = Loading(700, 0);
  const StepGraph* const ranks[] = {&quick, &slow};
  EXPECT_DOUBLE_EQ(Predict(ranks, {ChangeNamed("workers")}).expected_ns, 150e3)
      << "both take 100 us to take a batch";
  EXPECT_DOUBLE_EQ(Predict(quick, {ChangeNamed("workers")}).expected_ns, 750e3) << "alone it waits as it did";
}

TEST(PredictTest, WhatHelpsTheRankThatIsWaitedForCanBeMadeThere) {
  StepGraph quick = Loading(100, 600);
  const StepGraph slow = Loading(700, 0);
  quick.nodes[1].work = Work::kHost;
  const StepGraph* const ranks[] = {&quick, &slow};
  EXPECT_EQ(WhyNot(*ChangeNamed("workers"), ranks), std::nullopt);
  EXPECT_DOUBLE_EQ(Predict(ranks, {ChangeNamed("workers")}).expected_ns, 150e3);
}

TEST(PredictTest, TheRankThatIsWaitedForGainsNothingFromAnEndToWaits) {
  const StepGraph quick = Loading(100, 600), slow = Loading(700, 0);
  const StepGraph* const ranks[] = {&slow, &quick};
  EXPECT_NE(WhyNot(*ChangeNamed("straggler"), ranks), std::nullopt);
}

}  // namespace
}  // namespace fullbore::replay
