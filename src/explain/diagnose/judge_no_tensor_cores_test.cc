#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::kMs;
using ::testing::Not;

ARun WithActivity(double sm, double tensor) {
  return ATraining()
      .OnGpu(Metric::kGpuUtilization, 0.95)
      .OnGpu(Metric::kGpuSmActive, sm)
      .OnGpu(Metric::kGpuTensorActive, tensor);
}

ARun WithKernels(std::map<std::string, int64_t> class_ns) {
  ARun run = ATrace();
  run.rank().kernel_class_ns = std::move(class_ns);
  return run;
}

TEST(NoTensorCoresTest, IsRaisedByTensorCoresThatIdleWhileTheChipWorks) {
  EXPECT_THAT(Diagnose(WithActivity(0.8, 0.0)), Finds("no-tensor-cores"));
}

TEST(NoTensorCoresTest, IsNotRaisedByTensorCoresThatWorkALittle) {
  EXPECT_THAT(Diagnose(WithActivity(0.8, 0.02)), Not(Finds("no-tensor-cores")));
}

TEST(NoTensorCoresTest, IsNotRaisedByAChipThatHardlyWorks) {
  EXPECT_THAT(Diagnose(WithActivity(0.2, 0.0)), Not(Finds("no-tensor-cores")));
}

TEST(NoTensorCoresTest, IsRaisedByMatrixKernelsWithTheirShare) {
  const Diagnosis diagnosis = Diagnose(WithKernels({{"matmul", 6'000 * kMs}, {"elementwise", 4'000 * kMs}}));
  ASSERT_THAT(diagnosis, Finds("no-tensor-cores"));
  EXPECT_NEAR(FindingIn(diagnosis, "no-tensor-cores")->share, 0.6, 1e-9);
}

TEST(NoTensorCoresTest, IsNotRaisedWhereMostMatrixKernelsUseThem) {
  EXPECT_THAT(Diagnose(WithKernels({{"matmul", 4'000 * kMs}, {"matmul_tensor", 6'000 * kMs}})),
              Not(Finds("no-tensor-cores")));
}

TEST(NoTensorCoresTest, IsNotRaisedByATwentiethOfTheStep) {
  EXPECT_THAT(Diagnose(WithKernels({{"matmul", 400 * kMs}, {"elementwise", 9'600 * kMs}})),
              Not(Finds("no-tensor-cores")));
}

}  // namespace
}  // namespace fullbore::diagnose
