#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ATraining;
using testing::Finds;
using testing::LeavesOpen;
using ::testing::Not;

TEST(OversizedBatchTest, IsLeftToTwoRuns) {
  const Diagnosis diagnosis =
      Diagnose(ATraining().OnGpu(Metric::kGpuMemoryUsed, 79e9).OnGpu(Metric::kGpuMemoryTotal, 80e9));
  EXPECT_THAT(diagnosis, LeavesOpen("oversized-batch"));
  EXPECT_THAT(diagnosis, Not(Finds("oversized-batch")));
}

}  // namespace
}  // namespace fullbore::diagnose
