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
  for (int i = 0; i < 100; ++i) made.Launch(i * 10).Ran(50'000 + i * 1000, 51'000 + i * 1000);
  EXPECT_FALSE(made.Finished().noticed.clock_ahead_ns);
}

}  // namespace
}  // namespace fullbore::timeline
