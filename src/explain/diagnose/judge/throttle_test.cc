#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::Not;

TEST(ThrottleTest, IsRaisedByADeviceHeldBackByHeat) {
  const Diagnosis diagnosis = Diagnose(ATraining()
                                           .OnGpu(Metric::kGpuThrottleThermal, 0.3)
                                           .OnGpu(Metric::kGpuSmClock, 1000e6)
                                           .OnGpu(Metric::kGpuSmClockMax, 2000e6));
  ASSERT_THAT(diagnosis, FindsCause("throttle", "thermal"));
  EXPECT_EQ(FindingIn(diagnosis, "throttle")->severity, Severity::kWarning);
  EXPECT_EQ(FindingIn(diagnosis, "throttle")->method, "") << "how much follows the clock is not known";
}

TEST(ThrottleTest, AtThePowerLimitADeviceWorksAsItWasBuilt) {
  const Diagnosis diagnosis = Diagnose(ATraining().OnGpu(Metric::kGpuThrottlePower, 0.9));
  ASSERT_THAT(diagnosis, FindsCause("throttle", "power"));
  EXPECT_EQ(FindingIn(diagnosis, "throttle")->severity, Severity::kInfo);
  EXPECT_THAT(diagnosis, Finds("healthy"));
}

TEST(ThrottleTest, IsNotRaisedByAMomentOfIt) {
  EXPECT_THAT(
      Diagnose(ATraining().OnGpu(Metric::kGpuThrottleThermal, 0.04).OnGpu(Metric::kGpuThrottlePower, 0.04)),
      Not(Finds("throttle")));
}

}  // namespace
}  // namespace fullbore::diagnose
