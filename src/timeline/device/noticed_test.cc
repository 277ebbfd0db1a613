#include "timeline/device/noticed.h"

#include <gmock/gmock.h>

#include <numeric>

#include "timeline/device/rank.h"
#include "timeline/testing/made_trace.h"

namespace fullbore::timeline {
namespace {

using record::Share;
using record::StepsBy;
using testing::MadeTrace;

int64_t BareUs(const DeviceTrace& trace) {
  int64_t ns = 0;
  for (const auto& stretch : trace.noticed.bare) ns += stretch.end_ns - stretch.begin_ns;
  return ns / 1000;
}

// ---- launches that ran nothing ----

// Steps of 1 ms: 10 launches, the host waits for their kernels of 80 us each.
MadeTrace Steps(int from, int until, bool recorded) {
  MadeTrace made;
  for (int64_t step = from; step < until; ++step) {
    const int64_t t = step * 1000;
    made.Step(step, t, t + 1000);
    for (int64_t i = 0; i < 10; ++i) {
      made.Launch(t + 50 + i * 10);
      if (recorded || step >= until / 2) made.Ran(t + 60 + i * 80, t + 140 + i * 80);
    }
    made.Call("cudaDeviceSynchronize", t + 160, t + 880);
  }
  return made;
}

TEST(DeviceNoticedTest, LaunchesThatRanWhatTheyLaunchedAreNotBare) {
  MadeTrace made = Steps(0, 6, true);
  const record::Noticed& noticed = made.Finished().noticed;
  EXPECT_EQ(noticed.launches, 60);
  EXPECT_EQ(noticed.ran_nothing, 0);
  EXPECT_TRUE(noticed.bare.empty());
  EXPECT_EQ(noticed.span_ns, 5'800'000);
  EXPECT_EQ(noticed.devices, 1);
}

TEST(DeviceNoticedTest, StepsWhoseKernelsWereDroppedAreBareAndLeftOut) {
  MadeTrace made = Steps(0, 6, false);
  const RankResult result = SummariseRank(made.Finished());
  const record::Noticed& noticed = result.info.noticed;
  EXPECT_EQ(noticed.launches, 60);
  EXPECT_EQ(noticed.ran_nothing, 30);
  ASSERT_EQ(noticed.bare.size(), 3U);
  EXPECT_EQ(noticed.bare[0].begin_ns, 50'000);
  EXPECT_EQ(noticed.bare[0].end_ns, 880'000) << "when the host had waited for them";
  EXPECT_EQ(noticed.bare[0].ran_nothing, 10);
  EXPECT_EQ(noticed.bare_steps, 3);
  EXPECT_EQ(noticed.empty_steps, 0);
  EXPECT_EQ(result.info.steps.size(), 3U);
}

TEST(DeviceNoticedTest, TimeInWhichTheDeviceMayHaveWorkedIsNeitherSyncNorLaunch) {
  MadeTrace made;
  made.Step(1, 0, 1000).Launch(0).Ran(10, 100).Launch(110).Call("cudaStreamSynchronize", 120, 700);
  made.Launch(800).Ran(810, 1000);
  const RankResult result = SummariseRank(made.Finished());
  EXPECT_EQ(BareUs(made.trace), 700 - 110);
  ASSERT_EQ(result.info.steps.size(), 1U);
  const record::Step& step = result.info.steps[0];
  EXPECT_EQ(step.share_ns[Index(Share::kHostOther)], 590'000);
  EXPECT_EQ(step.share_ns[Index(Share::kSync)], 110'000) << "of an empty queue, after the wait";
  EXPECT_EQ(std::accumulate(step.share_ns.begin(), step.share_ns.end(), int64_t{0}), step.wall_ns);
  EXPECT_TRUE(result.info.tables->syncs[0].idle_ns == 110'000);
}

TEST(DeviceNoticedTest, GraphsThatRanNothingAreSeenBetweenLaunchesThatRan) {
  MadeTrace made;
  for (int64_t i = 0; i < 40; ++i) {
    const int64_t t = i * 1000;
    made.Call("cudaGraphLaunch", t, t + 20);
    if (i % 12 == 0) made.Ran(t + 20, t + 900);
    made.Launch(t + 30).Ran(t + 910, t + 915).Call("cudaStreamSynchronize", t + 40, t + 920);
  }
  const record::Noticed& noticed = made.Finished().noticed;
  EXPECT_EQ(noticed.launches, 80);
  EXPECT_EQ(noticed.ran_nothing, 36);
  EXPECT_EQ(BareUs(made.trace), 36 * 910);
}

TEST(DeviceNoticedTest, WhatIsCapturedIntoAGraphRunsNothing) {
  MadeTrace made;
  made.Launch(0).Ran(10, 12);
  for (int i = 0; i < 400; ++i) made.Launch(100 + i * 100);
  made.Launch(42'000).Ran(42'010, 42'013);
  const record::Noticed& noticed = made.Finished().noticed;
  EXPECT_EQ(noticed.ran_nothing, 400);
  EXPECT_EQ(BareUs(made.trace), 42'010 - 100);
  EXPECT_TRUE(BeginsCapture("cudaStreamBeginCapture"));
  EXPECT_TRUE(BeginsCapture("hipStreamBeginCapture"));
  EXPECT_FALSE(BeginsCapture("cudaStreamIsCapturing"));
  EXPECT_FALSE(BeginsCapture("cudaStreamEndCapture"));
}

TEST(DeviceNoticedTest, TheLastLaunchesMayRunWhenTheRecordingIsOver) {
  MadeTrace made = Steps(0, 4, true);
  for (int i = 0; i < 50; ++i) made.Launch(5000 + i);
  const record::Noticed& noticed = made.Finished().noticed;
  EXPECT_EQ(noticed.launches, 40);
  EXPECT_EQ(noticed.ran_nothing, 0);
}

TEST(DeviceNoticedTest, TheLastLaunchesDidRunIfTheHostHasWaitedForThem) {
  MadeTrace made = Steps(0, 4, true);
  for (int i = 0; i < 50; ++i) made.Launch(5000 + i * 10);
  made.Call("cudaDeviceSynchronize", 5600, 9000);
  const record::Noticed& noticed = made.Finished().noticed;
  EXPECT_EQ(noticed.ran_nothing, 50);
  EXPECT_EQ(BareUs(made.trace), 4000);
}

TEST(DeviceNoticedTest, ALaunchWithinALaunchIsTheSameLaunch) {
  MadeTrace made;
  made.Call("cudaLaunchKernel", 0, 10).Call("cuLaunchKernel", 2, 8).Ran(20, 30).Launch(40).Ran(50, 60);
  const record::Noticed& noticed = made.Finished().noticed;
  EXPECT_EQ(noticed.launches, 2);
  EXPECT_EQ(noticed.ran_nothing, 0);
}

TEST(DeviceNoticedTest, WithoutIdsNothingIsSaidOfLaunchesThatRanNothing) {
  MadeTrace made = Steps(0, 4, true);
  for (DeviceOp& op : made.trace.ops) op.correlation = 0;
  EXPECT_EQ(made.Finished().noticed.ran_nothing, 0);
  EXPECT_TRUE(made.trace.noticed.bare.empty());
}

TEST(DeviceNoticedTest, WithoutADeviceThereIsNoTimeOfItsToDivide) {
  MadeTrace made;
  made.Launch(0).Launch(10).Call("cudaDeviceSynchronize", 20, 30);
  const record::Noticed& noticed = made.Finished().noticed;
  EXPECT_EQ(noticed.launches, 2);
  EXPECT_EQ(noticed.ran_nothing, 2);
  EXPECT_TRUE(noticed.bare.empty());
  EXPECT_EQ(noticed.devices, 0);
}

// ---- cold calls ----

TEST(DeviceNoticedTest, LaunchesThatLoadCodeAreColdThoughNearlyAllOfThemDo) {
  MadeTrace made;
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t t = i * 15'000;
    made.Call("cudaLaunchKernel", t, t + 14'800).Ran(t + 14'810, t + 14'850);
  }
  made.Launch(300'000).Ran(300'010, 300'050);
  const record::Noticed& noticed = made.Finished().noticed;
  EXPECT_EQ(noticed.cold_calls, 20);
  EXPECT_EQ(noticed.cold_ns, 20 * 14'800'000);
}

TEST(DeviceNoticedTest, ALaunchThatWaitsForRoomInAFullQueueIsNotCold) {
  MadeTrace made;
  for (int64_t i = 0; i < 20; ++i) made.Launch(i * 10).Ran(10 + i * 10'000, 10'010 + i * 10'000);
  made.Call("cudaLaunchKernel", 300, 9'000).Ran(200'010, 200'020);
  EXPECT_EQ(made.Finished().noticed.cold_calls, 0);
}

TEST(DeviceNoticedTest, ALaunchThatWaitsForWorkFromBeforeTheRecordingIsNotCold) {
  for (const bool earlier : {true, false}) {
    MadeTrace made;
    if (earlier) made.Ran(0, 10).Ran(8'000, 8'010);
    made.Call("cudaLaunchKernel", 100, 7'900).Ran(8'020, 8'030);
    for (int i = 0; i < 20; ++i) made.Launch(9'000 + i * 10).Ran(9'020 + i * 10, 9'025 + i * 10);
    EXPECT_EQ(made.Finished().noticed.cold_calls, earlier ? 0 : 1);
  }
}

TEST(DeviceNoticedTest, CodeIsLoadedWhateverTheDeviceStillHasToDo) {
  MadeTrace made;
  made.Ran(0, 10).Ran(8'000, 8'010);
  made.Call("cuModuleLoadData", 100, 7'900);
  made.Launch(9'000).Ran(9'020, 9'025);
  EXPECT_EQ(made.Finished().noticed.cold_calls, 1);
}

TEST(DeviceNoticedTest, CallsMayBeColdWhereNoOperationIsTiedToOne) {
  MadeTrace made;
  for (int i = 0; i < 20; ++i) made.Ran(9'020 + i * 10, 9'025 + i * 10);
  made.Call("cudaLaunchKernel", 100, 7'900);
  EXPECT_EQ(made.Finished().noticed.cold_calls, 1);
}

TEST(DeviceNoticedTest, CodeThatIsLoadedInALaunchCountsOnce) {
  MadeTrace made;
  made.Launch(0).Ran(10, 20);
  made.Call("cudaLaunchKernel", 100, 5100).Ran(5110, 5120).Call("cuModuleLoadData", 110, 5000);
  made.Call("cuLibraryLoadData", 6000, 6400).Call("cudaStreamSynchronize", 7000, 99'000);
  const record::Noticed& noticed = made.Finished().noticed;
  EXPECT_EQ(noticed.cold_calls, 2);
  EXPECT_EQ(noticed.cold_ns, 5'400'000);
}

// ---- steps ----

TEST(DeviceNoticedTest, WhatTheBackwardPassLaunchesForTheSecondTimeIsCounted) {
  MadeTrace made;
  made.Step(0, 0, 1000).Launch(10).Ran(20, 120);                   // forward
  made.Launch(210, 1).Ran(220, 320).Launch(330, 1).Ran(340, 540);  // again, and backward
  made.trace.recomputations.push_back({200'000, 300'000, 1});
  const record::Noticed& noticed = made.Finished().noticed;
  EXPECT_EQ(noticed.computed_ns, 400'000);
  EXPECT_EQ(noticed.recomputed_ns, 100'000);
}

TEST(DeviceNoticedTest, AStepAtTheEndInWhichTheDeviceDoesNothingIsLeftOut) {
  MadeTrace made = Steps(0, 4, true);
  made.Step(4, 4000, 4100);
  const RankResult result = SummariseRank(made.Finished());
  EXPECT_EQ(result.info.steps.size(), 4U);
  EXPECT_EQ(result.info.noticed.empty_steps, 1);
  EXPECT_EQ(result.info.noticed.steps_by, StepsBy::kMarks);
}

TEST(DeviceNoticedTest, AnEmptyStepInTheMiddleStaysAndSoDoesTheOnlyOne) {
  MadeTrace made;
  made.Step(0, 0, 100).Launch(10).Ran(20, 90).Step(1, 100, 200).Step(2, 200, 300).Launch(210).Ran(220, 290);
  EXPECT_EQ(SummariseRank(made.Finished()).info.steps.size(), 3U);
  MadeTrace other;
  other.Step(0, 1000, 1100).Launch(10).Ran(20, 90);
  EXPECT_EQ(SummariseRank(other.Finished()).info.steps.size(), 1U);
}

TEST(DeviceNoticedTest, StepsThatCoverAPartOfTheRecordingSaySo) {
  MadeTrace made;
  made.Step(0, 500, 600).Step(1, 600, 700);
  for (int64_t i = 0; i < 10; ++i) made.Launch(i * 100).Ran(i * 100 + 10, i * 100 + 95);
  const record::Noticed noticed = SummariseRank(made.Finished()).info.noticed;
  EXPECT_EQ(noticed.span_ns, 985'000);
  EXPECT_NEAR(static_cast<double>(noticed.stepped_ns), 200'000, 10'000);
}

TEST(DeviceNoticedTest, HowStepsWereToldIsNoticed) {
  MadeTrace nothing;
  nothing.Launch(0).Ran(10, 20);
  EXPECT_EQ(SummariseRank(nothing.Finished()).info.noticed.steps_by, StepsBy::kNothing);
  MadeTrace periods;
  for (int64_t i = 0; i < 8; ++i) {
    periods.Launch(i * 100).Ran(i * 100 + 10, i * 100 + 40).Launch(i * 100 + 20);
    periods.Ran(i * 100 + 50, i * 100 + 80, 0, "multi_tensor_apply");
  }
  EXPECT_EQ(SummariseRank(periods.Finished()).info.noticed.steps_by, StepsBy::kPeriod);
}

}  // namespace
}  // namespace fullbore::timeline
