#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ACommandWithoutTraining;
using testing::ARun;
using testing::ATraining;
using testing::Finds;
using ::testing::Not;

ARun AHeldGpu(int64_t seconds, double utilization) {
  return ACommandWithoutTraining(seconds)
      .OnGpu(Metric::kGpuUtilization, utilization)
      .OnGpu(Metric::kGpuMemoryUsed, 20e9);
}

TEST(IdleDeviceTest, IsRaisedByAGpuThatIsHeldAndRunsNothing) {
  EXPECT_THAT(Diagnose(AHeldGpu(400, 0.001)), Finds("idle-device"));
}

TEST(IdleDeviceTest, IsNotRaisedWithinFiveMinutes) {
  EXPECT_THAT(Diagnose(AHeldGpu(290, 0.001)), Not(Finds("idle-device")));
}

TEST(IdleDeviceTest, IsNotRaisedByALittleWork) {
  EXPECT_THAT(Diagnose(AHeldGpu(400, 0.05)), Not(Finds("idle-device")));
}

TEST(IdleDeviceTest, IsNotRaisedByATrainingThatHasAFindingOfItsOwn) {
  EXPECT_THAT(
      Diagnose(ATraining(4000).OnGpu(Metric::kGpuUtilization, 0.001).OnGpu(Metric::kGpuMemoryUsed, 20e9)),
      Not(Finds("idle-device")));
}

}  // namespace
}  // namespace fullbore::diagnose
