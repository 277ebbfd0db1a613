#include "timeline/device/clock.h"

#include <gmock/gmock.h>

#include "timeline/testing/made_trace.h"

namespace fullbore::timeline {
namespace {

using testing::MadeTrace;

// Steps of 10 kernels, each in a burst after the host has waited for the step before; `ahead` is how much too early
// the device's clock makes them, `drift` how much more so in every step.
MadeTrace WithClock(int64_t ahead, int64_t drift = 0) {
  MadeTrace made;
  for (int64_t step = 0; step < 8; ++step) {
    const int64_t t = 100'000 + step * 20'000;
    const int64_t off = ahead + step * drift;
    for (int64_t i = 0; i < 10; ++i)
      made.Launch(t + i * 10).Ran(t + 20 + i * 1000 - off, t + 1010 + i * 1000 - off);
    made.Call("cudaDeviceSynchronize", t + 200, t + 10'030);
  }
  return made;
}

TEST(DeviceClockTest, ADeviceClockThatIsAheadIsSetRightByTheLeastDelayOfALaunch) {
  MadeTrace made = WithClock(8000);
  made.Finished();
  ASSERT_TRUE(made.trace.noticed.clock_ahead_ns);
  EXPECT_NEAR(static_cast<double>(*made.trace.noticed.clock_ahead_ns), 8'000'000, 50'000);
  EXPECT_TRUE(made.trace.noticed.clock_corrected);
  for (const DeviceOp& op : made.trace.ops) EXPECT_GE(op.begin_ns, op.launch_begin_ns);
}

TEST(DeviceClockTest, ADeviceClockThatIsBehindIsSetRightByTheWaitsOfTheHost) {
  MadeTrace made = WithClock(-8000);
  made.Finished();
  ASSERT_TRUE(made.trace.noticed.clock_ahead_ns);
  EXPECT_NEAR(static_cast<double>(*made.trace.noticed.clock_ahead_ns), -8'000'000, 50'000);
  EXPECT_TRUE(made.trace.noticed.clock_corrected);
}

TEST(DeviceClockTest, ADeviceClockThatIsBehindShowsThoughMostWaitsAreOverBeforeTheyBegin) {
  MadeTrace made = WithClock(-8000);
  for (int64_t step = 0; step < 8; ++step) {
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t t = 100'000 + step * 20'000 + 18'500 + i * 100;
      made.Call("cudaDeviceSynchronize", t, t + 10);
    }
  }
  made.Finished();
  ASSERT_TRUE(made.trace.noticed.clock_ahead_ns);
  EXPECT_NEAR(static_cast<double>(*made.trace.noticed.clock_ahead_ns), -8'000'000, 50'000);
  EXPECT_TRUE(made.trace.noticed.clock_corrected);
}

TEST(DeviceClockTest, AClockThatDriftsIsKnownButNotSetRight) {
  MadeTrace made = WithClock(8000, 1000);
  const DeviceTrace& trace = made.Finished();
  EXPECT_TRUE(trace.noticed.clock_ahead_ns);
  EXPECT_FALSE(trace.noticed.clock_corrected);
  EXPECT_EQ(trace.ops[0].begin_ns, (100'020 - 8000) * 1000);
}

TEST(DeviceClockTest, KernelsAFewMicrosecondsBeforeTheirLaunchesAreNoMatterOfTheClock) {
  MadeTrace made = WithClock(23);
  EXPECT_FALSE(made.Finished().noticed.clock_ahead_ns);
}

TEST(DeviceClockTest, OneKernelWithAWrongTimeIsNoMatterOfTheClock) {
  MadeTrace made = WithClock(0);
  made.trace.ops[5].begin_ns -= 9'000'000;
  EXPECT_FALSE(made.Finished().noticed.clock_ahead_ns);
}

TEST(DeviceClockTest, AQueueThatIsNeverEmptySaysNothingOfTheClock) {
  MadeTrace made;
  for (int64_t i = 0; i < 100; ++i) made.Launch(i * 10).Ran(50'000 + i * 1000, 51'000 + i * 1000);
  EXPECT_FALSE(made.Finished().noticed.clock_ahead_ns);
}

// Steps of ten kernels that find the device idle, and nothing that waits for it; `late` is how much too late the
// device's clock makes them. Every `quick`th step begins at once all the same.
MadeTrace IdleInEveryStep(int64_t late, int64_t quick = 1000) {
  MadeTrace made;
  for (int64_t step = 0; step < 12; ++step) {
    const int64_t t = 100'000 + step * 20'000;
    const int64_t off = step % quick == quick - 1 ? 0 : late;
    for (int64_t i = 0; i < 10; ++i)
      made.Launch(t + i * 10).Ran(t + 15 + i * 1000 + off, t + 1005 + i * 1000 + off);
  }
  return made;
}

TEST(DeviceClockTest, WhatFindsTheDeviceIdleAndBeginsMuchLaterIsOfAClockThatIsLate) {
  MadeTrace made = IdleInEveryStep(6000);
  made.Finished();
  ASSERT_TRUE(made.trace.noticed.clock_ahead_ns);
  EXPECT_NEAR(static_cast<double>(*made.trace.noticed.clock_ahead_ns), -6'000'000, 50'000);
  EXPECT_TRUE(made.trace.noticed.clock_corrected);
  for (const DeviceOp& op : made.trace.ops) EXPECT_GE(op.begin_ns, op.launch_begin_ns);
}

TEST(DeviceClockTest, WhatIsSometimesHeldFromAnIdleDeviceIsNoMatterOfTheClock) {
  MadeTrace made = IdleInEveryStep(6000, 4);
  EXPECT_FALSE(made.Finished().noticed.clock_ahead_ns);
}

// A queue that is never empty, and one wait at its end, 9 ms before `late` of its kernels are over.
MadeTrace OneWait(int64_t late) {
  MadeTrace made;
  for (int64_t i = 0; i < 100; ++i) {
    const int64_t off = i >= 100 - late ? 9'000 : 0;
    made.Launch(i * 10).Ran(50'000 + i * 1000 + off, 50'990 + i * 1000 + off);
  }
  made.trace.streams.push_back("0/8");
  made.Call("cudaDeviceSynchronize", 1100, 150'000);
  return made;
}

TEST(DeviceClockTest, OneWaitThatEndsBeforeSeveralThatItHeldSaysThatTheClockIsLate) {
  MadeTrace made = OneWait(9);
  made.Finished();
  ASSERT_TRUE(made.trace.noticed.clock_ahead_ns);
  EXPECT_LT(*made.trace.noticed.clock_ahead_ns, -5'000'000);
  EXPECT_FALSE(made.trace.noticed.clock_corrected);
}

TEST(DeviceClockTest, OneWaitThatEndsBeforeOneThatItHeldIsNoMatterOfTheClock) {
  MadeTrace made = OneWait(1);
  EXPECT_FALSE(made.Finished().noticed.clock_ahead_ns);
}

TEST(DeviceClockTest, WhatFindsTheDeviceIdleSaysNothingWhereTheHostsWaitsEndInTime) {
  MadeTrace made = IdleInEveryStep(6000);
  made.trace.streams.push_back("0/8");
  for (int64_t step = 0; step < 3; ++step) {
    const int64_t end = 100'000 + step * 20'000 + 9'000 + 1005 + 6000;
    made.Call("cudaDeviceSynchronize", end - 3000, end + 10);
  }
  EXPECT_FALSE(made.Finished().noticed.clock_ahead_ns);
}

TEST(DeviceClockTest, WhatFindsTheDeviceIdleSaysNothingWhereOtherCallsRanNothing) {
  MadeTrace made = IdleInEveryStep(6000);
  for (int64_t step = 0; step < 12; ++step)
    made.Call("cudaMemcpyAsync", step * 20'000 + 100'500, step * 20'000 + 100'510);
  EXPECT_FALSE(made.Finished().noticed.clock_ahead_ns);
}

TEST(DeviceClockTest, ALaunchWithinALaunchIsOne) {
  MadeTrace made;
  for (int64_t step = 0; step < 12; ++step) {
    const int64_t t = 100'000 + step * 20'000;
    made.Call("cudaLaunchKernel", t, t + 8).Call("cuLaunchKernel", t + 1, t + 7).Ran(t + 6015, t + 7000);
  }
  EXPECT_TRUE(made.Finished().noticed.clock_corrected);
}

TEST(DeviceClockTest, AnOffsetThatLeavesAWaitContradictedIsNotSetRight) {
  MadeTrace made = IdleInEveryStep(2000);
  made.trace.streams.push_back("0/8");
  const int64_t t = 400'000;
  for (int64_t i = 0; i < 5; ++i) made.Launch(t + i * 10).Ran(t + 9000 + i * 1000, t + 10'000 + i * 1000);
  made.Call("cudaDeviceSynchronize", t + 100, t + 5000);
  made.Finished();
  ASSERT_TRUE(made.trace.noticed.clock_ahead_ns);
  EXPECT_LT(*made.trace.noticed.clock_ahead_ns, -5'000'000);
  EXPECT_FALSE(made.trace.noticed.clock_corrected);
}

TEST(DeviceClockTest, AWaitHoldsNothingThatAnotherThreadIsStillLaunching) {
  MadeTrace made;
  made.trace.streams.push_back("0/8");
  made.Call("cudaGraphLaunch", 1000, 1400, 1);
  for (int64_t i = 0; i < 10; ++i) made.Ran(1500 + i * 1000, 2490 + i * 1000);
  made.Call("cudaDeviceSynchronize", 1200, 1300);
  EXPECT_FALSE(made.Finished().noticed.clock_ahead_ns);
}

// Ten times a copy of `bytes` to the host and, `after` it, a wait for its stream, which ends before the copy does by the
// device's clock.
MadeTrace Items(int64_t late, Lane lane, int64_t bytes, int64_t after) {
  MadeTrace made;
  made.trace.streams.push_back("0/8");
  for (int64_t i = 0; i < 10; ++i) {
    const int64_t t = 100'000 + i * 20'000;
    made.Launch(t).Ran(t + 20 + late, t + 9'000 + late);
    made.Call("cudaMemcpyAsync", t + 10, t + 20).Ran(t + 9'000 + late, t + 9'010 + late, 1, "Memcpy DtoH");
    DeviceOp& copy = made.trace.ops.back();
    copy.kernel = false;
    copy.lane = lane;
    copy.detail = static_cast<uint32_t>(made.trace.copy_bytes.size());
    made.trace.copy_bytes.push_back(bytes);
    made.Call("cudaStreamSynchronize", t + 20 + after, t + 9'030);
    made.Launch(t + 9'100).Ran(t + 9'120 + late, t + 9'200 + late);
  }
  return made;
}

TEST(DeviceClockTest, AWaitForACopyEndsAfterTheCopy) {
  for (const auto& [lane, bytes] :
       {std::pair{Lane::kD2hPageable, 4'000'000}, std::pair{Lane::kD2hPinned, 4}}) {
    MadeTrace made = Items(700, lane, bytes, 5);
    made.Finished();
    ASSERT_TRUE(made.trace.noticed.clock_ahead_ns);
    EXPECT_NEAR(static_cast<double>(*made.trace.noticed.clock_ahead_ns), -700'000, 50'000);
    EXPECT_TRUE(made.trace.noticed.clock_corrected);
    EXPECT_FALSE(Items(0, lane, bytes, 5).Finished().noticed.clock_ahead_ns);
  }
}

TEST(DeviceClockTest, AWaitBehindACopyThatNobodyWaitsForMayEndBeforeIt) {
  EXPECT_FALSE(Items(700, Lane::kD2hPinned, 4'000'000, 5).Finished().noticed.clock_ahead_ns);
  EXPECT_FALSE(Items(700, Lane::kD2hPinned, 4, 100).Finished().noticed.clock_ahead_ns);
}

}  // namespace
}  // namespace fullbore::timeline
