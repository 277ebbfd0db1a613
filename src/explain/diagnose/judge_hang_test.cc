#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::Not;

// A training of 10 s, in which the GPU works.
ARun AWorkingTraining() {
  return ATraining().OnGpu(Metric::kGpuUtilization, 0.95).OnGpu(Metric::kGpuSmActive, 0.6);
}

TEST(HangTest, IsRaisedByAKernelThatSpinsSinceTheLastStep) {
  const Diagnosis diagnosis = Diagnose(AWorkingTraining()
                                           .ThenOnGpu(Metric::kGpuUtilization, 1.0, 180)
                                           .ThenOnGpu(Metric::kGpuSmActive, 0.001, 180));
  ASSERT_THAT(diagnosis, Finds("hang"));
  EXPECT_EQ(FindingIn(diagnosis, "hang")->severity, Severity::kCritical);
  EXPECT_THAT(FindingIn(diagnosis, "hang")->title, ::testing::HasSubstr("No step for 3 min"));
}

TEST(HangTest, IsNotRaisedBeforeTwoMinutes) {
  EXPECT_THAT(Diagnose(AWorkingTraining()
                           .ThenOnGpu(Metric::kGpuUtilization, 1.0, 110)
                           .ThenOnGpu(Metric::kGpuSmActive, 0.001, 110)),
              Not(Finds("hang")));
}

TEST(HangTest, IsNotRaisedByALongValidation) {
  EXPECT_THAT(Diagnose(AWorkingTraining()
                           .ThenOnGpu(Metric::kGpuUtilization, 1.0, 180)
                           .ThenOnGpu(Metric::kGpuSmActive, 0.5, 180)),
              Not(Finds("hang")));
}

TEST(HangTest, IsNotRaisedByAnIdleDevice) {
  EXPECT_THAT(Diagnose(AWorkingTraining()
                           .ThenOnGpu(Metric::kGpuUtilization, 0.0, 180)
                           .ThenOnGpu(Metric::kGpuSmActive, 0.0, 180)),
              Not(Finds("hang")));
}

}  // namespace
}  // namespace fullbore::diagnose
