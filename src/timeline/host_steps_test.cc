#include "timeline/host_steps.h"

#include <gtest/gtest.h>

#include "timeline/testing/host_events.h"

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

TEST(HostStepsTest, StepsUnderAProfilerOfOursAreCountedAndLeftOut) {
  HostSteps steps;
  Feed(steps, UsualStep(1000));
  auto windowed = UsualStep(1100);
  windowed.back().c = 1;
  EXPECT_TRUE(Feed(steps, windowed).empty());

  const auto next = Feed(steps, UsualStep(1300));

  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].index, 2);
  EXPECT_EQ(next[0].wall_ns, 200);  // from the end of the windowed step
}

TEST(HostStepsTest, ATrialThatTakesTurnsSaysWhatItHadOfTheCores) {
  HostSteps steps;
  const auto step_with = [&](int64_t at, int64_t without_core_ns, int64_t cpu_ns, int64_t on_core_ns) {
    auto events = UsualStep(at);
    const ChannelRecord& boundary = events.back();
    ChannelRecord cores = Event(EventKind::kCores, boundary.end_ns, boundary.end_ns, without_core_ns);
    cores.b = cpu_ns;
    cores.c = on_core_ns;
    cores.thread = boundary.thread;
    events.insert(events.end() - 1, cores);
    return Feed(steps, events).at(0);
  };
  EXPECT_EQ(step_with(1000, 7'000, 9'000, 5'000).without_core_ns, -1)
      << "of the first, nothing is known before it";
  const Step second = step_with(1100, 7'030, 9'120, 5'060);
  EXPECT_EQ(second.without_core_ns, 30);
  EXPECT_EQ(second.cpu_ns, 120);
  EXPECT_EQ(second.on_core_ns, 60);
  EXPECT_EQ(Sum(second), second.wall_ns);
  EXPECT_EQ(Feed(steps, UsualStep(1200)).at(0).without_core_ns, -1);
  EXPECT_EQ(step_with(1300, 7'100, 9'400, 5'200).without_core_ns, -1) << "the step before said nothing";
}

TEST(HostStepsTest, ACompiledStepIsComputationButForWhatItCompiles) {
  HostSteps steps;
  ChannelRecord call = Event(EventKind::kForward, 1010, 1090, 2);
  call.b = 32;
  const auto first = Feed(
      steps, {Event(EventKind::kOther, 1020, 1050, 0, 3), call, Event(EventKind::kOptimizer, 1090, 1090, 1)});
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].share_ns[Index(Share::kCompute)], 50);
  EXPECT_EQ(first[0].host_other_ns[static_cast<size_t>(HostOther::kCompilation)], 30);
  EXPECT_EQ(first[0].samples, 32) << "which no loader counted";
}

TEST(HostStepsTest, SamplesThatALoaderCountedAreNotCountedAgain) {
  HostSteps steps;
  ChannelRecord call = Event(EventKind::kForward, 1040, 1090, 2);
  call.b = 32;
  const auto first = Feed(
      steps, {Event(EventKind::kNext, 1000, 1040, 32), call, Event(EventKind::kOptimizer, 1090, 1090, 1)});
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].samples, 32);
  EXPECT_EQ(first[0].share_ns[Index(Share::kDataWait)], 40);
}

TEST(HostStepsTest, DividesAStepWithoutRemainder) {
  HostSteps steps;
  Feed(steps, UsualStep(1000));
  const auto second = Feed(steps, UsualStep(1100));
  ASSERT_EQ(second.size(), 1u);
  const Step& step = second[0];
  EXPECT_EQ(step.index, 1);
  EXPECT_EQ(step.wall_ns, 100);
  EXPECT_EQ(Sum(step), step.wall_ns);
  EXPECT_EQ(step.share_ns[Index(Share::kDataWait)], 40);
  EXPECT_EQ(step.share_ns[Index(Share::kForward)], 22);  // the loss behind it included
  EXPECT_EQ(step.share_ns[Index(Share::kBackward)], 28);
  EXPECT_EQ(step.share_ns[Index(Share::kOptimizer)], 5);
  EXPECT_EQ(step.share_ns[Index(Share::kHostOther)], 5);
  EXPECT_EQ(step.samples, 32);
}

TEST(HostStepsTest, BetweenMarksOfTheScriptsOwnTheLoopComputes) {
  const auto marked_step = [](int64_t at) {
    ChannelRecord mark = Event(EventKind::kOptimizer, at + 100, at + 100, 1);
    mark.b = 1;
    return std::vector<ChannelRecord>{Event(EventKind::kNext, at, at + 40, 32), mark};
  };
  HostSteps steps;
  Feed(steps, marked_step(1000));
  const auto second = Feed(steps, marked_step(1100));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].share_ns[Index(Share::kDataWait)], 40) << "what it takes batches from feeds it";
  EXPECT_EQ(second[0].share_ns[Index(Share::kCompute)], 60);
  EXPECT_EQ(second[0].samples, 32);
}

TEST(HostStepsTest, TheFirstStepBeginsWithItsFirstEvent) {
  HostSteps steps;
  const auto first = Feed(steps, UsualStep(1000));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].wall_ns, 95);
}

TEST(HostStepsTest, AClosureInsideTheOptimizerKeepsItsPhases) {
  HostSteps steps;
  Feed(steps, UsualStep(1000));
  const auto done =
      Feed(steps, {Event(EventKind::kNext, 1095, 1100, 8), Event(EventKind::kForward, 1110, 1120, 1),
                   Event(EventKind::kBackward, 1120, 1150), Event(EventKind::kOptimizer, 1105, 1160, 1)});
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].share_ns[Index(Share::kForward)], 10);
  EXPECT_EQ(done[0].share_ns[Index(Share::kBackward)], 30);
  EXPECT_EQ(done[0].share_ns[Index(Share::kOptimizer)], 15);
  EXPECT_EQ(Sum(done[0]), done[0].wall_ns);
}

TEST(HostStepsTest, AnEvaluationLoopAndTheTimeInsideItAreValidation) {
  HostSteps steps;
  Feed(steps, UsualStep(1000));
  std::vector<ChannelRecord> events;
  for (int64_t at : {1100, 1200}) {
    events.push_back(Event(EventKind::kNext, at, at + 10, 16, /*id=*/7));
    events.push_back(Event(EventKind::kForward, at + 20, at + 50, 0));
    events.back().c = record::kPassInEvaluation | record::kPassOfTrained;
  }
  for (const auto& event : UsualStep(1300)) events.push_back(event);
  const auto done = Feed(steps, events);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].host_other_ns[static_cast<size_t>(HostOther::kValidation)], 150);
  EXPECT_EQ(done[0].samples, 32);  // evaluation samples do not count as training samples
  EXPECT_EQ(Sum(done[0]), done[0].wall_ns);
}

// Distillation: a teacher's pass within each step.
std::vector<ChannelRecord> StepWithTeacher(int64_t at) {
  std::vector<ChannelRecord> events = UsualStep(at);
  ChannelRecord teacher = Event(EventKind::kForward, at + 40, at + 50);
  teacher.c = record::kPassInEvaluation | record::kPassOfApart;
  events[1].begin_ns = at + 50;
  events.insert(events.begin() + 1, teacher);
  return events;
}

TEST(HostStepsTest, AFrozenNetworkWithinTheStepIsPartOfItsForwardPass) {
  HostSteps steps;
  Feed(steps, StepWithTeacher(1000));
  const auto done = Feed(steps, StepWithTeacher(1100));
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].share_ns[Index(Share::kForward)], 22);
  EXPECT_EQ(done[0].share_ns[Index(Share::kHostOther)], 5);
  EXPECT_EQ(steps.passes().frozen_ns, 20);
}

TEST(HostStepsTest, PassesThatAreNotToldApartAreNamedByWhatIsSeen) {
  HostSteps steps;
  std::vector<Step> done;
  for (int64_t at = 1000; at < 2000; at += 100) {
    auto events = StepWithTeacher(at);
    events[1].c = record::kPassOfTrained;  // it acts, or teaches itself
    done = Feed(steps, events);
  }
  EXPECT_EQ(done[0].host_other_ns[static_cast<size_t>(HostOther::kWithoutGradients)], 10);
  EXPECT_EQ(done[0].host_other_ns[static_cast<size_t>(HostOther::kValidation)], 0);
}

TEST(HostStepsTest, TwoLoadersMayFeedTheSteps) {
  HostSteps steps;
  std::vector<Step> done;
  for (int64_t at = 1000; at < 2000; at += 100) {
    auto events = UsualStep(at);
    events[0].end_ns = at + 20;
    events.insert(events.begin() + 1, Event(EventKind::kNext, at + 20, at + 40, 32, /*id=*/2));
    done = Feed(steps, events);
  }
  EXPECT_TRUE(steps.IsTrainingLoader(0));
  EXPECT_TRUE(steps.IsTrainingLoader(2));
  EXPECT_EQ(done[0].share_ns[Index(Share::kDataWait)], 40);
}

TEST(HostStepsTest, ALoaderThatEachStepBeginsAnewIsAValidations) {
  HostSteps steps;
  for (int64_t at = 1000; at < 2000; at += 100) {
    auto events = UsualStep(at);
    ChannelRecord next = Event(EventKind::kNext, at - 4, at - 3, 32, /*id=*/2);
    next.c = 1;
    events.insert(events.begin(), next);
    Feed(steps, events);
  }
  EXPECT_FALSE(steps.IsTrainingLoader(2));
}

TEST(HostStepsTest, WithoutAModuleWhatLeadsToTheBackwardPassIsComputation) {
  HostSteps steps;
  std::vector<Step> done;
  for (int64_t at = 1000; at < 3000; at += 100) {
    done =
        Feed(steps, {Hit(at + 10, record::Activity::kUnknown, 0), Hit(at + 15, record::Activity::kPython, 0),
                     Hit(at + 20, record::Activity::kUnknown, 0), Hit(at + 30, record::Activity::kLogging, 0),
                     Event(EventKind::kBackward, at + 40, at + 80),
                     Event(EventKind::kOptimizer, at + 80, at + 100, 1)});
  }
  EXPECT_TRUE(steps.computes_unseen());
  EXPECT_EQ(done[0].share_ns[Index(Share::kCompute)], 30);
  EXPECT_EQ(done[0].share_ns[Index(Share::kHostOther)], 10) << "the part of the samples that saw a log";
  EXPECT_EQ(Sum(done[0]), 100);
}

TEST(HostStepsTest, WithAModuleWhatLeadsToItIsNot) {
  HostSteps steps;
  Feed(steps, UsualStep(1000));
  const auto done = Feed(steps, UsualStep(1200));
  EXPECT_FALSE(steps.computes_unseen());
  EXPECT_EQ(done[0].share_ns[Index(Share::kHostOther)], 105);
}

TEST(HostStepsTest, WhatFollowsTheLastGradientIsWaitingForOtherRanks) {
  HostSteps steps;
  Feed(steps, UsualStep(1000));
  const auto done =
      Feed(steps, {Event(EventKind::kNext, 1095, 1100, 8), Event(EventKind::kForward, 1100, 1110, 1),
                   Event(EventKind::kBackward, 1110, 1150, /*a=*/1125),
                   Event(EventKind::kOptimizer, 1150, 1155, 1)});
  EXPECT_EQ(done[0].share_ns[Index(Share::kBackward)], 15);
  EXPECT_EQ(done[0].share_ns[Index(Share::kCommExposed)], 25);
}

TEST(HostStepsTest, ACheckpointIsNamed) {
  HostSteps steps;
  Feed(steps, UsualStep(1000));
  ChannelRecord save = Event(EventKind::kOther, 1096, 1196);
  save.id = static_cast<uint16_t>(record::OtherKind::kCheckpoint);
  std::vector<ChannelRecord> events = {save};
  for (const auto& event : UsualStep(1200)) events.push_back(event);
  const auto done = Feed(steps, events);
  EXPECT_EQ(done[0].host_other_ns[static_cast<size_t>(HostOther::kCheckpoint)], 100);
}

TEST(HostStepsTest, GradientAccumulationCountsItsBatches) {
  HostSteps steps;
  std::vector<ChannelRecord> events;
  for (int64_t at : {1000, 1100}) {
    auto usual = UsualStep(at);
    if (at == 1000) usual.pop_back();
    events.insert(events.end(), usual.begin(), usual.end());
  }
  const auto done = Feed(steps, events);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].batches, 2);
  EXPECT_EQ(done[0].samples, 64);
}

TEST(HostStepsTest, CollectivesThatReduceAreToldFromThoseThatGather) {
  HostSteps steps;
  std::vector<ChannelRecord> events = UsualStep(1000);
  ChannelRecord gather = Event(EventKind::kCollective, 1064, 1070),
                reduce = Event(EventKind::kCollective, 1080, 1083);
  reduce.b = 1;
  events.insert(events.end() - 1, {gather, reduce});
  Feed(steps, events);
  EXPECT_EQ(steps.exchanges().collectives_ns, 9);
  EXPECT_EQ(steps.exchanges().reducing_ns, 3);
}

TEST(HostStepsTest, LineHitsCountForTheShareTheyFallInto) {
  HostSteps steps;
  std::vector<ChannelRecord> events = UsualStep(1000);
  events.insert(events.begin() + 1, Event(EventKind::kLine, 1020, 1020, /*line id=*/3));
  Feed(steps, events);
  const auto hits = steps.TakeLineHits();
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits.begin()->first.share, Share::kDataWait);
  EXPECT_EQ(hits.begin()->first.line, 3);
}

TEST(HostStepsTest, LineHitsCountThoughAnotherThreadWritesThem) {
  HostSteps steps;
  std::vector<ChannelRecord> events = UsualStep(1000);
  ChannelRecord hit = Event(EventKind::kLine, 1020, 1020, /*line id=*/3);
  hit.thread = 1;
  events.insert(events.begin() + 1, hit);
  Feed(steps, events);
  EXPECT_EQ(steps.TakeLineHits().size(), 1u);
}

TEST(HostStepsTest, LineHitsOfSlowStepsAreTold) {
  HostSteps steps;
  int64_t at = 1000;
  for (int i = 0; i < 30; ++i) {
    const int64_t extra = i == 20 ? 500 : 0;
    Feed(steps, {Event(EventKind::kForward, at, at + 60 + extra, 1),
                 Event(EventKind::kLine, at + 20, at + 20, /*line id=*/i == 20 ? 7 : 3),
                 Event(EventKind::kBackward, at + 60 + extra, at + 90 + extra),
                 Event(EventKind::kOptimizer, at + 90 + extra, at + 95 + extra, 1)});
    at += 100 + extra;
  }
  for (const auto& [hit, samples] : steps.TakeLineHits()) {
    EXPECT_EQ(hit.slow, hit.line == 7);
    EXPECT_EQ(samples, hit.line == 7 ? 1 : 29);
  }
}

// A step of `passes` backward passes that exchange gradients; between them another optimizer steps, or nothing does.
std::vector<ChannelRecord> Exchanging(int64_t at, int passes, bool steps_between) {
  std::vector<ChannelRecord> events;
  for (int i = 0; i < passes; ++i, at += 20) {
    if (i > 0 && steps_between) events.push_back(Event(EventKind::kOptimizer, at, at + 1, 0));
    ChannelRecord backward = Event(EventKind::kBackward, at + 2, at + 12);
    backward.b = 1;
    events.push_back(backward);
  }
  events.push_back(Event(EventKind::kOptimizer, at, at + 5, 1));
  return events;
}

TEST(HostStepsTest, ExchangesOfGradientsThatMoreIsAddedToAreCounted) {
  HostSteps steps;
  Feed(steps, Exchanging(1000, 8, false));
  Feed(steps, Exchanging(2000, 8, false));
  EXPECT_EQ(steps.exchanges().steps, 2);
  EXPECT_EQ(steps.exchanges().passes, 16);
  EXPECT_EQ(steps.exchanges().exchanging, 16);
  EXPECT_EQ(steps.exchanges().early, 14);
}

TEST(HostStepsTest, ExchangesBetweenWhichAnOptimizerUsesTheGradientsAreNotEarly) {
  HostSteps steps;
  Feed(steps, Exchanging(1000, 2, true));
  EXPECT_EQ(steps.exchanges().exchanging, 2);
  EXPECT_EQ(steps.exchanges().early, 0);
}

TEST(HostStepsTest, PassesUnderNoSyncAreNoExchanges) {
  HostSteps steps;
  std::vector<ChannelRecord> events = Exchanging(1000, 8, false);
  for (int i = 0; i < 7; ++i) events[static_cast<size_t>(i)].b = 2;
  Feed(steps, events);
  EXPECT_EQ(steps.exchanges().passes, 8);
  EXPECT_EQ(steps.exchanges().exchanging, 1);
  EXPECT_EQ(steps.exchanges().early, 0);
}

// A batch of an evaluation: next, forward, and 5 ns of something else.
std::vector<ChannelRecord> EvaluatedBatch(int64_t at) {
  return {Event(EventKind::kNext, at, at + 40, 32), Event(EventKind::kForward, at + 40, at + 95, 0)};
}

TEST(HostStepsTest, WithoutAnOptimizerABatchIsAStep) {
  HostSteps steps;
  for (int64_t at = 1000; at < 1500; at += 100) EXPECT_TRUE(Feed(steps, EvaluatedBatch(at)).empty());
  ASSERT_TRUE(steps.TakeBatchesForSteps());
  const std::vector<Step> taken = steps.TakeSteps();
  ASSERT_EQ(taken.size(), 5u);
  EXPECT_EQ(taken[0].samples, 32);
  EXPECT_EQ(taken[4].samples, 32);
  EXPECT_EQ(taken[1].index, 1);
  EXPECT_EQ(taken[1].wall_ns, 100);
  EXPECT_EQ(taken[1].share_ns[Index(Share::kDataWait)], 40);
  EXPECT_EQ(taken[1].share_ns[Index(Share::kForward)], 55);
  EXPECT_EQ(taken[1].samples, 32);
  EXPECT_TRUE(steps.IsTrainingLoader(0));
}

TEST(HostStepsTest, WhatPrecedesAndFollowsTheBatchesIsNoStep) {
  HostSteps steps;
  Feed(steps, {Event(EventKind::kForward, 500, 900)});  // tried out before the loader was asked
  for (int64_t at = 1000; at < 1300; at += 100) Feed(steps, EvaluatedBatch(at));
  Feed(steps, {Event(EventKind::kNext, 1310, 1320, 0), Event(EventKind::kOther, 1400, 9000)});
  ASSERT_TRUE(steps.TakeBatchesForSteps());
  const std::vector<Step> taken = steps.TakeSteps();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[0].wall_ns, 100);
  EXPECT_EQ(taken[2].wall_ns, 110) << "until the loader is asked in vain for one more";
}

TEST(HostStepsTest, WeightsUpdatedByHandStepWithEachBackwardPass) {
  HostSteps steps;
  for (int64_t at = 1000; at < 1500; at += 100) {
    Feed(steps, {Event(EventKind::kForward, at, at + 30, 1), Event(EventKind::kForward, at + 30, at + 40, 1),
                 Event(EventKind::kBackward, at + 40, at + 80)});
  }
  ASSERT_TRUE(steps.TakeBatchesForSteps());
  const std::vector<Step> taken = steps.TakeSteps();
  ASSERT_EQ(taken.size(), 5u);
  EXPECT_EQ(taken[0].wall_ns, 100);
  EXPECT_EQ(taken[0].share_ns[Index(Share::kBackward)], 40);
  EXPECT_EQ(taken[4].wall_ns, 80) << "the last one ends with its last pass";
}

TEST(HostStepsTest, WithoutModulesAndLoadersEachBackwardPassIsAStep) {
  HostSteps steps;
  for (int64_t at = 1000; at < 1500; at += 100) Feed(steps, {Event(EventKind::kBackward, at + 40, at + 80)});
  ASSERT_TRUE(steps.TakeBatchesForSteps());
  const std::vector<Step> taken = steps.TakeSteps();
  ASSERT_EQ(taken.size(), 5u);
  EXPECT_EQ(taken[0].wall_ns, 100);
  EXPECT_EQ(taken[0].share_ns[Index(Share::kBackward)], 40);
  EXPECT_EQ(taken[0].share_ns[Index(Share::kCompute)], 60) << "the update, and the next step's forward pass";
}

TEST(HostStepsTest, TwoBackwardPassesOfModulesAreOneStep) {
  HostSteps steps;
  for (int64_t at = 1000; at < 1500; at += 100) {
    Feed(steps, {Event(EventKind::kForward, at, at + 30, 1), Event(EventKind::kBackward, at + 40, at + 60),
                 Event(EventKind::kBackward, at + 60, at + 80)});
  }
  ASSERT_TRUE(steps.TakeBatchesForSteps());
  EXPECT_EQ(steps.TakeSteps().size(), 5u);
}

TEST(HostStepsTest, AnEvaluationBeforeTheTrainingIsNotItsSteps) {
  HostSteps steps;
  for (int64_t at = 1000; at < 1500; at += 100) Feed(steps, EvaluatedBatch(at));
  const std::vector<Step> trained = Feed(steps, UsualStep(1500));
  ASSERT_EQ(trained.size(), 1u);
  EXPECT_EQ(trained[0].index, 0);
  EXPECT_FALSE(steps.TakeBatchesForSteps());
}

TEST(HostStepsTest, EventsOfOtherThreadsTakeNoTimeFromTheStep) {
  HostSteps steps;
  Feed(steps, UsualStep(1000));
  std::vector<ChannelRecord> events = UsualStep(1100);
  ChannelRecord foreign = Event(EventKind::kOther, 1095, 1190);
  foreign.thread = 4;
  events.insert(events.begin(), foreign);
  const auto done = Feed(steps, events);
  EXPECT_EQ(done[0].share_ns[Index(Share::kHostOther)], 5);
}

TEST(HostStepsTest, AFloodOfEventsIsCountedButNotKept) {
  HostSteps steps;
  for (size_t i = 0; i < kMaxPendingEvents + 10; ++i)
    steps.OnEvent(Event(EventKind::kForward, 1000, 1001, 0));
  EXPECT_EQ(steps.dropped_events(), 10u);
}

// Evaluation or inference on other threads may go on for long before the first optimizer step.
TEST(HostStepsTest, AStepAfterAFloodFromOtherThreadsIsStillAStep) {
  HostSteps steps;
  for (size_t i = 0; i < kMaxPendingEvents; ++i) {
    ChannelRecord foreign = Event(EventKind::kForward, 1000, 1001, 0);
    foreign.thread = 4;
    steps.OnEvent(foreign);
  }
  const auto first = Feed(steps, UsualStep(2000));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].end_ns, 2095);
  EXPECT_EQ(first[0].wall_ns, 5) << "what was kept of it: the event that ended it";
  EXPECT_EQ(steps.dropped_events(), 3u);
  const auto second = Feed(steps, UsualStep(2100));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].share_ns[Index(Share::kDataWait)], 40);
}

}  // namespace
}  // namespace fullbore::timeline
