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
  record::KernelStats product;
  product.name = "ampere_sgemm_128x64_nn";
  product.kernel_class = "matmul";
  run.rank().tables.emplace().kernels = {product};
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

// What the shapes say of the matrix kernels of ATrace: `reason` holds for half of their time.
ARun WithShapes(record::RooflineReason reason) {
  ARun run = WithKernels({{"matmul", 10'000 * kMs}});
  record::RooflineOperator half;
  half.device_ns = 5'000 * kMs;
  half.why = {{reason, ""}};
  record::Roofline roofline;
  roofline.classes = {{"matmul", 10'000 * kMs, 10'000 * kMs, 0, 0, std::nullopt}};
  roofline.operators = {half};
  run.rank().roofline = roofline;
  return run;
}

TEST(NoTensorCoresTest, CountsOnlyWhatWouldRunOnThemWhereShapesTell) {
  const Diagnosis diagnosis = Diagnose(WithShapes(record::RooflineReason::kNoTensorCores));
  ASSERT_THAT(diagnosis, Finds("no-tensor-cores"));
  EXPECT_NEAR(FindingIn(diagnosis, "no-tensor-cores")->share, 0.5, 1e-9);
}

TEST(NoTensorCoresTest, IsNotRaisedByDepthwiseConvolutions) {
  EXPECT_THAT(Diagnose(WithShapes(record::RooflineReason::kDepthwise)), Not(Finds("no-tensor-cores")));
}

TEST(NoTensorCoresTest, IsNotRaisedWhereNothingSaysThatTheDeviceHasThem) {
  ARun run = WithKernels({{"matmul", 10'000 * kMs}});
  run.rank().tables->kernels.front().name = "maxwell_sgemm_128x64_nn";
  EXPECT_THAT(Diagnose(run), Not(Finds("no-tensor-cores")));
}

TEST(NoTensorCoresTest, IsNotRaisedOnADeviceWithoutThem) {
  record::Recording recording = WithKernels({{"matmul", 10'000 * kMs}});
  recording.machine["gpu0"] = "Tesla P100-PCIE-16GB";
  EXPECT_THAT(Diagnose(recording), Not(Finds("no-tensor-cores")));
}

TEST(NoTensorCoresTest, KernelsOfVoltaGetFloat16WithoutANameOfTheDevice) {
  ARun run = WithKernels({{"matmul", 10'000 * kMs}});
  run.rank().tables->kernels.front().name = "volta_sgemm_128x128_nn";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, Finds("no-tensor-cores"));
  EXPECT_THAT(FindingIn(diagnosis, "no-tensor-cores")->change,
              ::testing::HasSubstr("float16) with a GradScaler"));
}

TEST(NoTensorCoresTest, AdvisesTheTypeThatTheDeviceTakes) {
  record::Recording recording = WithKernels({{"matmul", 10'000 * kMs}});
  recording.machine["gpu0"] = "Tesla V100-SXM2-16GB";
  const Diagnosis diagnosis = Diagnose(recording);
  EXPECT_THAT(FindingIn(diagnosis, "no-tensor-cores")->change,
              ::testing::HasSubstr("float16) with a GradScaler"));
}

}  // namespace
}  // namespace fullbore::diagnose
