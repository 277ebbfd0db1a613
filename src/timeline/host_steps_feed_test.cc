#include <gtest/gtest.h>

#include "timeline/testing/host_events.h"

// What feeds the steps where no loader does: as the samples of the lines tell.
namespace fullbore::timeline {
namespace {

using record::ChannelRecord;
using record::EventKind;
using record::HostOther;
using record::Index;
using record::Share;
using record::Step;
using testing::Event;
using testing::Feed;
using testing::Hit;
using testing::Sum;
using testing::UsualStep;

// A step without a loader: 60 ns before the forward pass, 10 ns of them a copy.
std::vector<ChannelRecord> StepWithoutLoader(int64_t at, std::vector<ChannelRecord> hits) {
  hits.push_back(Event(EventKind::kH2d, at + 50, at + 60));
  hits.push_back(Event(EventKind::kForward, at + 60, at + 70, 1));
  hits.push_back(Event(EventKind::kBackward, at + 70, at + 80));
  hits.push_back(Event(EventKind::kOptimizer, at + 80, at + 90, 1));
  return hits;
}

TEST(HostStepsTest, WhatTheSamplesSawFeedTheStepsIsWaitingForData) {
  HostSteps steps;
  std::vector<Step> done;
  for (int64_t at = 1000; at < 3000; at += 100) {
    done = Feed(steps, StepWithoutLoader(at, {Hit(at + 10, record::Activity::kQueue, 2),
                                              Hit(at + 45, record::Activity::kLogging, 0)}));
  }
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wall_ns, 100);
  EXPECT_EQ(Sum(done[0]), 100);
  EXPECT_EQ(done[0].share_ns[Index(Share::kDataWait)], 30) << "half of the samples, half of 60 ns";
  EXPECT_EQ(done[0].share_ns[Index(Share::kHostOther)], 30);
  EXPECT_EQ(done[0].host_other_ns[static_cast<size_t>(HostOther::kUnnamed)], 30);
  const auto hits = steps.TakeLineHits();
  const LineHit waiting = {Share::kDataWait, HostOther::kUnnamed, 3, record::Activity::kQueue, false};
  const LineHit logging = {Share::kHostOther, HostOther::kUnnamed, 3, record::Activity::kLogging, false};
  EXPECT_EQ(hits.at(waiting), 20);
  EXPECT_EQ(hits.at(logging), 20);
}

TEST(HostStepsTest, AFewSamplesAreNotEnoughToCallItWaiting) {
  HostSteps steps;
  std::vector<Step> done;
  for (int64_t at = 1000; at < 1900; at += 100)
    done = Feed(steps, StepWithoutLoader(at, {Hit(at + 10, record::Activity::kQueue, 2)}));
  EXPECT_EQ(done[0].share_ns[Index(Share::kDataWait)], 0);
  done = Feed(steps, StepWithoutLoader(1900, {Hit(1910, record::Activity::kQueue, 2)}));
  EXPECT_EQ(done[0].share_ns[Index(Share::kDataWait)], 60);
}

// Of the steps that end up to then, with one sample each, of which the first `seen` saw a queue.
int64_t WaitsOfSteps(int64_t count, int64_t seen) {
  HostSteps steps;
  int64_t waits = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = 1000 + 100 * i;
    const auto hit =
        i < seen ? Hit(at + 10, record::Activity::kQueue, 2) : Hit(at + 10, record::Activity::kLogging, 0);
    for (const ChannelRecord& event : StepWithoutLoader(at, {hit})) steps.OnEvent(event);
  }
  for (const Step& step : steps.TakeSteps(/*last=*/true)) waits += step.share_ns[Index(Share::kDataWait)];
  return waits;
}

TEST(HostStepsTest, OneOrTwoSamplesMayHaveMetAStrayCall) {
  EXPECT_EQ(WaitsOfSteps(12, 1), 0);
  EXPECT_EQ(WaitsOfSteps(12, 2), 0);
  EXPECT_GT(WaitsOfSteps(12, 3), 0);
}

TEST(HostStepsTest, TheFirstStepsAreHeldBackUntilEnoughSamplesTellWhatFeedsThem) {
  HostSteps steps;
  for (int64_t at = 1000; at < 1900; at += 100) {
    for (const ChannelRecord& event : StepWithoutLoader(at, {Hit(at + 10, record::Activity::kQueue, 2)}))
      steps.OnEvent(event);
    EXPECT_TRUE(steps.TakeSteps().empty());
  }
  for (const ChannelRecord& event : StepWithoutLoader(1900, {Hit(1910, record::Activity::kQueue, 2)}))
    steps.OnEvent(event);
  const std::vector<Step> done = steps.TakeSteps();
  ASSERT_EQ(done.size(), 10u);
  EXPECT_EQ(done[0].share_ns[Index(Share::kDataWait)], 40) << "it begins with its first event";
  for (size_t i = 1; i < done.size(); ++i) EXPECT_EQ(done[i].share_ns[Index(Share::kDataWait)], 60) << i;
}

TEST(HostStepsTest, StepsWithoutSamplesAreNotHeldBackForever) {
  HostSteps steps;
  size_t done = 0;
  for (int64_t at = 1000; at < 11'000; at += 100) {
    for (const ChannelRecord& event : StepWithoutLoader(at, {})) steps.OnEvent(event);
    done += steps.TakeSteps().size();
  }
  EXPECT_EQ(done, 100u);
}

TEST(HostStepsTest, AQueueThatIsReadAfterTheForwardPassFeedsNothing) {
  HostSteps steps;
  std::vector<Step> done;
  for (int64_t at = 1000; at < 3000; at += 100) {
    done =
        Feed(steps,
             {Event(EventKind::kForward, at, at + 20, 1), Event(EventKind::kBackward, at + 20, at + 50),
              Hit(at + 70, record::Activity::kQueue, 2), Event(EventKind::kOptimizer, at + 90, at + 100, 1)});
  }
  EXPECT_EQ(done[0].share_ns[Index(Share::kDataWait)], 0);
  EXPECT_EQ(done[0].share_ns[Index(Share::kHostOther)], 40);
}

TEST(HostStepsTest, WhereALoaderFeedsTheStepsAQueueBesideItIsOtherWork) {
  HostSteps steps;
  std::vector<Step> done;
  for (int64_t at = 1000; at < 3000; at += 100) {
    std::vector<ChannelRecord> events = UsualStep(at);
    events.insert(events.begin(), Hit(at - 3, record::Activity::kQueue, 2));
    done = Feed(steps, events);
  }
  EXPECT_EQ(done[0].share_ns[Index(Share::kDataWait)], 40);
}

TEST(HostStepsTest, WhatAnotherProcessAnswersFeedsTheStepsBesideALoaderOfPrompts) {
  HostSteps steps;
  std::vector<Step> done;
  for (int64_t at = 1000; at < 3000; at += 100) {
    std::vector<ChannelRecord> events = UsualStep(at);
    events.insert(events.begin(), Hit(at - 3, record::Activity::kNetwork, 3));
    done = Feed(steps, events);
  }
  EXPECT_EQ(done[0].share_ns[Index(Share::kDataWait)], 45) << "5 ns before the loader is asked";
}

TEST(HostStepsTest, AnAnswerWithinACollectiveIsTheCollectives) {
  HostSteps steps;
  std::vector<Step> done;
  for (int64_t at = 1000; at < 3000; at += 100) {
    done = Feed(steps, StepWithoutLoader(at, {Event(EventKind::kCollective, at, at + 40),
                                              Hit(at + 10, record::Activity::kNetwork, 3)}));
  }
  EXPECT_EQ(done[0].share_ns[Index(Share::kDataWait)], 0);
  EXPECT_EQ(done[0].share_ns[Index(Share::kCommExposed)], 40);
}

TEST(HostStepsTest, TheLoaderOfAValidationDoesNotFeedTheTrainingAfterIt) {
  HostSteps steps;
  Feed(steps, StepWithoutLoader(1000, {}));
  std::vector<ChannelRecord> events = {Event(EventKind::kNext, 1100, 1110, 16, /*id=*/7),
                                       Event(EventKind::kForward, 1110, 1150, 0),
                                       Event(EventKind::kNext, 1150, 1160, 0, /*id=*/7)};
  for (const auto& event : StepWithoutLoader(1200, {})) events.push_back(event);
  const auto done = Feed(steps, events);
  EXPECT_FALSE(steps.IsTrainingLoader(7));
  EXPECT_EQ(done[0].share_ns[Index(Share::kDataWait)], 0);
}

}  // namespace
}  // namespace fullbore::timeline
