// Changes of what ranks exchange: small graphs whose new length follows on paper.
#include <gmock/gmock.h>

#include "explain/replay/change/changes.h"
#include "explain/replay/predict.h"
#include "explain/replay/simulate.h"
#include "explain/replay/testing/after.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::Lane;
using record::Phase;
using record::StepGraph;
using record::Work;
using testing::AfterUs;
using testing::MadeGraph;

TEST(NoStragglerTest, CollectivesTakeNoLongerThanTheirOwnWork) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto reduce = made.Add(Work::kDevice, 1'000, {{begin}});
  made[reduce].lane = Lane::kComm;
  made.Add(Work::kStepEnd, 0, {{reduce, Dependency::kStream}});
  EXPECT_NE(NoStraggler()->WhyNot(made.Graph()), std::nullopt);
  made[reduce].wait_ns = 800'000;
  EXPECT_DOUBLE_EQ(AfterUs(made.Graph(), NoStraggler(), Outlook::kHopeful), 200);
}

// A step is collectives of so many KB, each of which takes 100 us and a us for a KB, one after the other.
StepGraph WithCollectives(std::initializer_list<int64_t> kb, int steps = 1) {
  MadeGraph made;
  auto last = made.Add(Work::kStepEnd, 0);
  for (int step = 0; step < steps; ++step) {
    for (const int64_t size : kb) {
      last = made.Add(Work::kDevice, 100 + size, {{last, Dependency::kStream}});
      made[last].lane = Lane::kComm;
      made[last].bytes = size << 10;
    }
    last = made.Add(Work::kStepEnd, 0, {{last, Dependency::kStream}});
  }
  return made.Graph();
}

TEST(FasterLinksTest, MakesOnlyTheBytesFasterAndNotTheStartOfACollective) {
  const StepGraph graph = WithCollectives({100, 300, 800});
  EXPECT_NEAR(AfterUs(graph, ChangeNamed("links=4")), 3 * 100 + 1200 / 4.0, 1);
  EXPECT_GT(AfterUs(graph, ChangeNamed("links=4"), Outlook::kCautious), 3 * 100 + 1200 / 4.0);
}

TEST(FasterLinksTest, TakesCollectivesOfOneSizeAsBoundByTheirBytes) {
  EXPECT_NEAR(AfterUs(WithCollectives({300, 300}), ChangeNamed("links=2")), 400, 1);
}

TEST(BucketsTest, SavesTheStartOfEachCollectiveButTheLast) {
  EXPECT_NEAR(AfterUs(WithCollectives({100, 300, 800}), ChangeNamed("bucket=25")), 100 + 1200, 1);
}

TEST(BucketsTest, WhereAllHaveOneSizeTheirStartIsWhatIsUsual) {
  const StepGraph graph = WithCollectives({100, 100, 100});
  const double now_us = StepNs(graph) / 1e3;
  EXPECT_NEAR(AfterUs(graph, ChangeNamed("bucket=25")), now_us - 2 * 30, 1);
  EXPECT_NEAR(AfterUs(graph, ChangeNamed("bucket=25"), Outlook::kCautious), now_us - 2 * 8, 1);
  EXPECT_NEAR(AfterUs(graph, ChangeNamed("bucket=25"), Outlook::kHopeful), now_us - 2 * 200, 1);
}

// Three collectives, which the host launches after so many us of its own, and before so many.
StepGraph LaunchedAmid(double before_us, double after_us) {
  MadeGraph made;
  auto thread = made.Add(Work::kStepEnd, 0), stream = thread;
  for (int i = 0; i < 3; ++i) {
    const auto way = made.Add(Work::kHost, before_us, {{thread, Dependency::kThread}});
    const auto call = made.Add(Work::kLaunch, 10, {{way, Dependency::kThread}});
    stream = made.Add(Work::kDevice, 5, {{call, Dependency::kLaunch}, {stream, Dependency::kStream}});
    made[stream].lane = Lane::kComm;
    made[stream].bytes = 1 << 10;
    thread = made.Add(Work::kHost, after_us, {{call, Dependency::kThread}});
  }
  made.Add(Work::kStepEnd, 0, {{thread, Dependency::kThread}, {stream, Dependency::kStream}});
  return made.Graph();
}

TEST(BucketsTest, TheHostLaunchesOnlyTheLastCollectiveOfABucket) {
  const StepGraph graph = LaunchedAmid(100, 7);
  ASSERT_DOUBLE_EQ(StepNs(graph) / 1e3, 3 * 117);
  EXPECT_DOUBLE_EQ(AfterUs(graph, ChangeNamed("bucket=25")), 3 * 107 - 2 * 45 + 10);
  EXPECT_DOUBLE_EQ(AfterUs(graph, ChangeNamed("bucket=25"), Outlook::kCautious), 3 * 107 - 2 * 15 + 10);
  EXPECT_DOUBLE_EQ(AfterUs(LaunchedAmid(10, 97), ChangeNamed("bucket=25")), 3 * 107 - 2 * 45 + 10)
      << "a part of the way lies behind the launch";
}

TEST(BucketsTest, ChangesNothingWhereTheyAreFull) {
  const StepGraph graph = WithCollectives({1024, 1000});
  EXPECT_DOUBLE_EQ(AfterUs(graph, ChangeNamed("bucket=1")), StepNs(graph) / 1e3);
}

// A step is a backward pass of ten kernels of 10 us, and then collectives of so many MB, a us for each.
StepGraph WithExchange(std::initializer_list<int64_t> mb, Phase pass = Phase::kBackward, int steps = 1) {
  MadeGraph made;
  auto last = made.Add(Work::kStepEnd, 0);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 10; ++i) {
      last = made.Add(Work::kDevice, 10, {{last, Dependency::kStream}});
      made[last].phase = pass;
    }
    auto order =
        Dependency::kEvent;  // the first waits for the pass, the others are behind it on their stream
    for (const int64_t size : mb) {
      last = made.Add(Work::kDevice, size, {{last, order}, {0, Dependency::kLaunch}});
      order = Dependency::kStream;
      made[last].lane = Lane::kComm;
      made[last].bytes = size << 20;
      made[last].place = 1;
    }
    const auto update = made.Add(Work::kDevice, 5, {{last, Dependency::kEvent}});
    made[update].phase = Phase::kOptimizer;
    last = made.Add(Work::kStepEnd, 0, {{update, Dependency::kStream}});
  }
  return made.Graph();
}

TEST(OverlapTest, OnlyTheLastBucketRemainsAfterTheBackwardPass) {
  EXPECT_DOUBLE_EQ(AfterUs(WithExchange({25}), Overlap(), Outlook::kHopeful), 100 + 25 + 5);
  EXPECT_DOUBLE_EQ(AfterUs(WithExchange({100}), Overlap(), Outlook::kHopeful), 30 + 100 + 5)
      << "cut into four, the first of which is there after three kernels of ten";
  EXPECT_DOUBLE_EQ(AfterUs(WithExchange({20, 20}), Overlap(), Outlook::kHopeful), 100 + 20 + 5);
}

TEST(OverlapTest, SmallCollectivesWaitUntilTheirBucketIsFull) {
  EXPECT_DOUBLE_EQ(AfterUs(WithExchange({1, 8, 8, 8}), Overlap(), Outlook::kExpected),
                   AfterUs(WithExchange({1, 24}), Overlap(), Outlook::kExpected))
      << "of 25 MB, all but the first one are there only when the pass has ended";
}

// Ten of a MB, a us each, all of which may be the start: one bucket of 1 MB and one of 9 have two starts.
TEST(OverlapTest, SmallCollectivesSaveTheirStartsInEachStep) {
  for (const int steps : {1, 2}) {
    const StepGraph graph = WithExchange({1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, Phase::kBackward, steps);
    EXPECT_NEAR(AfterUs(graph, Overlap(), Outlook::kHopeful), 100 + 9 * 0.2 + 5, 0.1) << steps;
    EXPECT_NEAR(AfterUs(graph, Overlap(), Outlook::kHopeful), AfterUs(graph, Overlap()), 10) << steps;
  }
}

TEST(OverlapTest, OfUnknownSizeEachCollectiveBeginsWithItsPartOfThePass) {
  StepGraph graph = WithExchange({10, 10, 10, 10});
  for (auto& node : graph.nodes) node.bytes = -1;
  EXPECT_DOUBLE_EQ(AfterUs(graph, Overlap(), Outlook::kHopeful), 100 + 10 + 5);
}

TEST(OverlapTest, ALongExchangeIsNotHidden) {
  EXPECT_DOUBLE_EQ(AfterUs(WithExchange({25, 400}), Overlap(), Outlook::kHopeful), 10 + 425 + 5)
      << "it begins with the first kernel of ten, as 6 % of the gradients are there";
}

TEST(OverlapTest, WithoutABackwardPassThereIsNothingToOverlap) {
  EXPECT_NE(Overlap()->WhyNot(WithExchange({25}, Phase::kForward)), std::nullopt);
}

TEST(OverlapTest, WhatOverlapsAlreadyStaysAsItIs) {
  StepGraph graph = WithExchange({25});
  std::swap(graph.nodes[10], graph.nodes[11]);
  EXPECT_NE(Overlap()->WhyNot(graph), std::nullopt);
}

TEST(AccumulationTest, ExchangesOnceInSoManySteps) {
  EXPECT_NEAR(AfterUs(WithCollectives({300, 300}, 8), ChangeNamed("accumulate=4")), 800 / 4.0, 1);
}

TEST(AccumulationTest, WhatIsNotExchangedIsNotLaunched) {
  EXPECT_DOUBLE_EQ(AfterUs(LaunchedAmid(100, 7), ChangeNamed("accumulate=4")), 3 * (107 - 45));
}

TEST(GradientsTest, WhatCarriesActivationsIsNotTheWrappersToChange) {
  StepGraph graph = WithCollectives({300, 300}, 8);
  for (auto& node : graph.nodes) node.of_gradients = false;
  for (const char* change : {"comm", "accumulate=4", "bucket=25"})
    EXPECT_NE(ChangeNamed(change)->WhyNot(graph), std::nullopt) << change;
  EXPECT_EQ(ChangeNamed("links=4")->WhyNot(graph), std::nullopt) << "links carry everything";
}

}  // namespace
}  // namespace fullbore::replay
