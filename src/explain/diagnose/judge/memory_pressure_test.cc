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

ARun AFilledGpu(double used) {
  return ATraining().OnGpu(Metric::kGpuMemoryUsed, used).OnGpu(Metric::kGpuMemoryTotal, 80e9);
}

TEST(MemoryPressureTest, IsRaisedByADeviceThatIsNearlyFull) {
  const Diagnosis nearly = Diagnose(AFilledGpu(73e9)), full = Diagnose(AFilledGpu(79e9));
  ASSERT_THAT(nearly, Finds("memory-pressure"));
  EXPECT_EQ(FindingIn(nearly, "memory-pressure")->severity, Severity::kWarning);
  EXPECT_EQ(FindingIn(full, "memory-pressure")->severity, Severity::kCritical);
}

TEST(MemoryPressureTest, IsNotRaisedBelowNineTenths) {
  EXPECT_THAT(Diagnose(AFilledGpu(71e9)), Not(Finds("memory-pressure")));
}

TEST(MemoryPressureTest, IsRaisedByASmallDeviceBesideALargeOne) {
  EXPECT_THAT(Diagnose(AFilledGpu(10e9)
                           .OnGpu(Metric::kGpuMemoryUsed, 23.5e9, "1")
                           .OnGpu(Metric::kGpuMemoryTotal, 24e9, "1")),
              Finds("memory-pressure"));
}

}  // namespace
}  // namespace fullbore::diagnose
