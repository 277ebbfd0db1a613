#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ARun;
using testing::ATraining;
using testing::Finds;
using testing::LeavesOpen;
using ::testing::Not;

ARun AGpu(double utilization, double sm_active) {
  return ATraining().OnGpu(Metric::kGpuUtilization, utilization).OnGpu(Metric::kGpuSmActive, sm_active);
}

TEST(LowActivityTest, IsRaisedByHighUtilisationOfAnIdleChip) {
  EXPECT_THAT(Diagnose(AGpu(0.98, 0.2)), Finds("low-activity"));
}

TEST(LowActivityTest, IsNotRaisedByAChipThatWorksForHalfOfTheTime) {
  EXPECT_THAT(Diagnose(AGpu(0.98, 0.45)), Not(Finds("low-activity")));
}

TEST(LowActivityTest, IsNotRaisedWhereUtilisationDoesNotMislead) {
  EXPECT_THAT(Diagnose(AGpu(0.7, 0.2)), Not(Finds("low-activity")));
}

TEST(LowActivityTest, WithoutFiguresOfTheChipItIsLeftOpen) {
  const Diagnosis diagnosis = Diagnose(ATraining().OnGpu(Metric::kGpuUtilization, 0.98));
  EXPECT_THAT(diagnosis, Not(Finds("low-activity")));
  EXPECT_THAT(diagnosis, LeavesOpen("SM and tensor-core activity"));
}

}  // namespace
}  // namespace fullbore::diagnose
