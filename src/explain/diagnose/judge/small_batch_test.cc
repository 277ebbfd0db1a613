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

ARun AGpuAtWork(double memory_used, double sm_active) {
  return ATraining()
      .OnGpu(Metric::kGpuUtilization, 0.95)
      .OnGpu(Metric::kGpuSmActive, sm_active)
      .OnGpu(Metric::kGpuTensorActive, 0.3)
      .OnGpu(Metric::kGpuMemoryUsed, memory_used)
      .OnGpu(Metric::kGpuMemoryTotal, 80e9);
}

TEST(SmallBatchTest, IsRaisedWhereMemoryIsLeftAndTheChipIsNotFull) {
  EXPECT_THAT(Diagnose(AGpuAtWork(9e9, 0.5)), Finds("small-batch"));
}

TEST(SmallBatchTest, IsNotRaisedWithoutHeadroomInMemory) {
  EXPECT_THAT(Diagnose(AGpuAtWork(65e9, 0.5)), Not(Finds("small-batch")));
}

TEST(SmallBatchTest, WhetherASmallerBatchWouldDoIsLeftToTwoRuns) {
  EXPECT_THAT(Diagnose(AGpuAtWork(79e9, 0.5)), LeavesOpen("whether a smaller batch would do"));
}

TEST(SmallBatchTest, IsNotRaisedByAFullChip) {
  EXPECT_THAT(Diagnose(AGpuAtWork(9e9, 0.75).OnGpu(Metric::kGpuSmOccupancy, 0.4)), Not(Finds("small-batch")));
}

TEST(SmallBatchTest, IsNotRaisedByADeviceThatWaitsForOthers) {
  EXPECT_THAT(Diagnose(ATraining()
                           .OnGpu(Metric::kGpuUtilization, 0.3)
                           .OnGpu(Metric::kGpuMemoryUsed, 9e9)
                           .OnGpu(Metric::kGpuMemoryTotal, 80e9)),
              Not(Finds("small-batch")));
}

}  // namespace
}  // namespace fullbore::diagnose
