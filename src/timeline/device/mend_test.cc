#include "timeline/device/mend.h"

#include <gmock/gmock.h>

#include "timeline/device/rank.h"
#include "timeline/testing/made_trace.h"

namespace fullbore::timeline {
namespace {

using testing::MadeTrace;

constexpr int64_t kHour = 3'600'000'000;  // of microseconds: how young a clock may be
constexpr int64_t kMonth = 730 * kHour;

std::vector<int64_t> Durations(const DeviceTrace& trace) {
  std::vector<int64_t> us;
  for (const DeviceOp& op : trace.ops) us.push_back((op.end_ns - op.begin_ns) / 1000);
  return us;
}

// ---- times that cannot be ----

// Two steps, and as many of which every event has neither time nor duration.
MadeTrace HalfWithoutTimes(int64_t clock) {
  MadeTrace made;
  for (int step = 0; step < 4; ++step) {
    const bool timeless = step >= 2;
    const int64_t t = timeless ? 0 : clock + step * 1000;
    made.Step(step, t, timeless ? 0 : t + 1000);
    made.Call("cudaLaunchKernel", t, timeless ? 0 : t + 5).Ran(t, timeless ? 0 : t + 900);
  }
  return made;
}

TEST(DeviceMendTest, EventsWithoutTimesAreLeftOutWhateverTheAgeOfTheClock) {
  for (const int64_t clock : {int64_t{100}, kHour, kMonth}) {
    MadeTrace made = HalfWithoutTimes(clock);
    const RankResult result = SummariseRank(made.Finished());
    ASSERT_EQ(result.info.steps.size(), 2U) << clock;
    EXPECT_EQ(result.info.steps[0].wall_ns, 1'000'000);
    EXPECT_EQ(result.info.noticed.left_out, 6);
    EXPECT_EQ(result.end_ns - result.begin_ns, 2'000'000);
  }
}

TEST(DeviceMendTest, WhatIsAtTimeZeroStaysWhereTheOthersFollowIt) {
  MadeTrace made;
  const DeviceTrace& trace = made.Step(0, 0, 100).Launch(0).Ran(0, 50).Launch(60).Ran(70, 90).Finished();
  EXPECT_EQ(trace.ops.size(), 2U);
  EXPECT_EQ(trace.steps.size(), 1U);
  EXPECT_EQ(trace.noticed.left_out, 0);
}

TEST(DeviceMendTest, KernelsOfSomeLengthAtTimeZeroAreLeftOutWhereTheClockIsOlderThanTheTrace) {
  MadeTrace made;
  made.Launch(kHour).Ran(0, 900).Launch(kHour + 10).Ran(kHour + 20, kHour + 30);
  EXPECT_EQ(made.Finished().ops.size(), 1U);
  EXPECT_EQ(made.trace.noticed.left_out, 1);
}

// ---- steps marked twice ----

TEST(DeviceMendTest, AStepMarkedOnTwoThreadsIsOneStep) {
  MadeTrace made;
  for (int step = 0; step < 5; ++step) {
    made.Step(step, step * 100 + 1, step * 100 + 98, 1).Step(step, step * 100, step * 100 + 99);
    made.Launch(step * 100 + 10).Ran(step * 100 + 20, step * 100 + 90);
  }
  const RankResult result = SummariseRank(made.Finished());
  EXPECT_EQ(result.info.steps.size(), 5U);
  EXPECT_EQ(made.trace.steps[0].thread, 0) << "the thread that launches";
  EXPECT_THAT(result.notes, ::testing::Contains(::testing::HasSubstr("more than once")));
}

TEST(DeviceMendTest, AStepMarkedTwiceOnOneThreadIsOneStep) {
  MadeTrace made;
  made.Step(1, 0, 100).Step(1, 0, 100).Step(2, 100, 200).Step(2, 105, 195).Launch(0).Ran(10, 190);
  EXPECT_EQ(made.Finished().steps.size(), 2U);
}

TEST(DeviceMendTest, StepsThatTouchOrComeFromThreadsInTurnAreAllKept) {
  MadeTrace made;
  made.Step(1, 0, 100).Step(2, 99, 200).Step(3, 200, 300, 1).Step(4, 300, 400).Launch(0).Ran(10, 390);
  EXPECT_EQ(made.Finished().steps.size(), 4U);
}

// ---- kernels that were recorded too long ----

TEST(DeviceMendTest, AKernelThatCoversItsSuccessorsEndsWhereTheNextOneBegins) {
  MadeTrace made;
  made.Launch(0).Ran(10, 20).Launch(1).Ran(20, 500).Launch(2).Ran(30, 40).Launch(3).Ran(40, 50);
  EXPECT_THAT(Durations(made.Finished()), ::testing::ElementsAre(10, 10, 10, 10));
  EXPECT_EQ(made.trace.noticed.cut, 1);
}

TEST(DeviceMendTest, ACutKernelEndsBeforeTheHostHasWaitedForIt) {
  MadeTrace made;
  made.Launch(0).Ran(10, 20).Launch(8).Ran(20, 5000);
  made.Call("cudaDeviceSynchronize", 14, 40).Launch(1000).Ran(1010, 1020);
  EXPECT_THAT(Durations(made.Finished()), ::testing::ElementsAre(10, 20, 10));
}

TEST(DeviceMendTest, OverlapsThatCanBeAreLeftAsTheyAre) {
  MadeTrace made;
  made.trace.streams = {"0/7", "0/8"};
  made.Launch(0).Ran(10, 30).Launch(1).Ran(25, 60);                  // a dependent launch begins early
  made.Launch(2).Ran(70, 200).Launch(3).Ran(80, 90, 1);              // of another stream
  made.Call("cudaGraphLaunch", 10, 30).Ran(300, 400).Ran(310, 320);  // branches of a graph
  EXPECT_THAT(Durations(made.Finished()), ::testing::ElementsAre(20, 35, 130, 10, 100, 10));
  EXPECT_EQ(made.trace.noticed.cut, 0);
}

// ---- ids ----

TEST(DeviceMendTest, IdsThatDifferOnlyAbove32BitsAreDifferent) {
  DeviceTrace trace;
  trace.threads = {"1/1"};
  for (uint64_t i = 1; i <= 3; ++i) {
    const auto t = static_cast<int64_t>(i * 1000);
    trace.calls.push_back({t, t + 5, i << 32, 0, 0, CallKind::kLaunch});
    DeviceOp op;
    op.begin_ns = t + 10;
    op.end_ns = t + 20;
    op.correlation = i << 32;
    trace.ops.push_back(op);
  }
  trace.Finish();
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(trace.ops[i].call, i);
}

}  // namespace
}  // namespace fullbore::timeline
