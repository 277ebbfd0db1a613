// A small trace judged as a whole: figures by hand on a device of round numbers' size.
#include "explain/roofline/roofline.h"

#include <gmock/gmock.h>

#include <cmath>

#include "explain/roofline/testing/made_trace.h"

namespace fullbore::roofline {
namespace {

using record::Bound;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using timeline::StepBounds;

constexpr char kH100[] = "NVIDIA H100 80GB HBM3";  // 989.4 TFLOP/s in 16 bits, 3.352 TB/s

// A product of 2 x 4096^3 = 137.4 GFLOP, at the peak 138.9 us; and an addition of 3 x 64 MiB, at the
// bandwidth 60.1 us.
MadeTrace TwoSteps() {
  MadeTrace made;
  made.Device(kH100, 132);
  for (const int64_t t : {0, 1000}) {
    const auto square = Tensor({4096, 4096}, kBf16);
    made.Op("aten::mm", t, 50, {square, square}).Kernel("sm90_bf16_gemm_tensorop", t + 10, t + 100, 278);
    const auto large = Tensor({4096, 4096}, kF32);
    made.Op("aten::add", t + 60, 20, {large, large}).Kernel("elementwise_kernel", t + 65, t + 378, 100);
    made.Kernel("my_own", t + 90, t + 500, 40);
  }
  return made;
}
const std::vector<StepBounds> kSteps = {{0, 1'000'000}, {1'000'000, 2'000'000}};

record::Roofline Judged(MadeTrace& made, const std::vector<StepBounds>& steps = kSteps) {
  const timeline::DeviceTrace& trace = made.Finish();
  return Judge(trace, steps, DeviceOf(trace));
}

TEST(RooflineTest, TheGraphOfTheStepsIsToldWhatItsOperationsHadToDo) {
  MadeTrace made = TwoSteps();
  record::StepGraph graph;
  for (const record::Work work : {record::Work::kHost, record::Work::kDevice, record::Work::kDevice,
                                  record::Work::kLaunch, record::Work::kDevice}) {
    graph.nodes.emplace_back();
    graph.nodes.back().work = work;
  }
  ASSERT_TRUE(RooflineOf(made.Finish(), kSteps, &graph).has_value());
  const auto task = [&](size_t node) { return graph.tasks[graph.nodes[node].task]; };
  EXPECT_EQ(task(1).flops, 2 * std::pow(4096, 3));
  EXPECT_EQ(task(1).arithmetic, record::Arithmetic::kBFloat16);
  EXPECT_EQ(task(2).bytes, 3.0 * 4096 * 4096 * 4);
  EXPECT_EQ(task(2).arithmetic, record::Arithmetic::kVector);
  EXPECT_EQ(graph.nodes[4].task, 0U) << "a kernel of no known operator";
  EXPECT_EQ(graph.nodes[0].task, 0U);
}

TEST(RooflineTest, EachOperatorHasWhatItReachedOfTheAttainable) {
  MadeTrace made = TwoSteps();
  const record::Roofline judged = Judged(made);
  ASSERT_EQ(judged.operators.size(), 2U);
  const record::RooflineOperator& product = judged.operators[0];
  EXPECT_EQ(product.name, "aten::mm");
  EXPECT_EQ(product.shape, "(4096, 4096) x (4096, 4096)");
  EXPECT_EQ(product.type, "bfloat16");
  EXPECT_EQ(product.kind, "matrix");
  EXPECT_EQ(product.kernel, "sm90_bf16_gemm_tensorop");
  EXPECT_EQ(product.count, 2);
  EXPECT_EQ(product.device_ns, 556'000);
  EXPECT_EQ(product.bound, Bound::kCompute);
  EXPECT_THAT(product.attainable_ns, Optional(DoubleNear(2 * 138'912, 10)));
  EXPECT_THAT(product.Reached(), Optional(DoubleNear(0.4997, 0.0001)));
  EXPECT_NEAR(product.AboveNs(), 278'176, 10);
  const record::RooflineOperator& sum = judged.operators[1];
  EXPECT_EQ(sum.bound, Bound::kMemory);
  EXPECT_THAT(sum.attainable_ns, Optional(DoubleNear(2 * 60'062, 10)));
}

TEST(RooflineTest, StepsHaveTheirFlopsAndTheFloorOfTheirWork) {
  MadeTrace made = TwoSteps();
  const record::Roofline judged = Judged(made);
  ASSERT_TRUE(judged.steps);
  EXPECT_EQ(judged.steps->steps, 2);
  EXPECT_EQ(judged.steps->wall_ns, 2'000'000);
  EXPECT_EQ(judged.steps->device_ns, 836'000);
  EXPECT_EQ(judged.steps->judged_ns, 756'000);
  EXPECT_DOUBLE_EQ(judged.steps->matrix_flops, 2 * 2 * std::pow(4096.0, 3));
  EXPECT_THAT(judged.steps->mfu, Optional(DoubleNear(0.1389, 0.0001)));
  // The kernel that is not judged stays as it is.
  EXPECT_THAT(judged.steps->floor_ns, Optional(DoubleNear(2 * (138'912 + 60'062) + 80'000, 20)));
}

TEST(RooflineTest, WhatLiesOutsideOfTheStepsIsNotTheirs) {
  MadeTrace made = TwoSteps();
  const record::Roofline judged = Judged(made, {{1'000'000, 2'000'000}});
  EXPECT_EQ(judged.steps->device_ns, 418'000);
  EXPECT_DOUBLE_EQ(judged.steps->matrix_flops, 2 * std::pow(4096.0, 3));
  EXPECT_EQ(judged.operators[0].count, 2) << "operators are those of the whole trace";
}

TEST(RooflineTest, ClassesAddUpAndSayHowMuchIsJudged) {
  MadeTrace made = TwoSteps();
  const record::Roofline judged = Judged(made);
  ASSERT_EQ(judged.classes.size(), 3U);
  EXPECT_EQ(judged.classes[0].kernel_class, "matmul_tensor");
  EXPECT_EQ(judged.classes[1].kernel_class, "elementwise");
  EXPECT_EQ(judged.classes[2].kernel_class, "other");
  EXPECT_EQ(judged.classes[2].device_ns, 80'000);
  EXPECT_EQ(judged.classes[2].judged_ns, 0);
  EXPECT_EQ(judged.classes[2].attainable_ns, std::nullopt);
}

TEST(RooflineTest, Float32OnATensorCoreIsTf32) {
  for (const char* kernel : {"volta_sgemm_simt", "sm90_tf32_s1688gemm"}) {
    MadeTrace made;
    made.Device(kH100, 132);
    made.Op("aten::mm", 0, 50, {Tensor({4096, 4096}), Tensor({4096, 4096})}).Kernel(kernel, 10, 100, 5000);
    const double peak = std::string(kernel) == "volta_sgemm_simt" ? 66.9e12 : 494.7e12;
    const record::Roofline judged = Judged(made);
    EXPECT_THAT(judged.operators[0].attainable_ns,
                Optional(DoubleNear(2 * std::pow(4096.0, 3) / peak * 1e9, 1)))
        << kernel;
  }
}

TEST(RooflineTest, WithoutAKnownDeviceNothingIsAttainable) {
  MadeTrace made = TwoSteps();
  made.Device("Test GPU", 12);
  const record::Roofline judged = Judged(made);
  EXPECT_EQ(judged.device, "");
  EXPECT_EQ(judged.operators[0].attainable_ns, std::nullopt);
  EXPECT_EQ(judged.operators[0].Reached(), std::nullopt);
  EXPECT_EQ(judged.operators[0].AboveNs(), 0);
  EXPECT_TRUE(judged.operators[0].flops);
  EXPECT_EQ(judged.steps->mfu, std::nullopt);
  EXPECT_EQ(judged.steps->floor_ns, std::nullopt);
  EXPECT_THAT(judged.notes, Contains(HasSubstr("'Test GPU' with 12 multiprocessors is not in the table")));
}

TEST(RooflineTest, ATraceWithoutShapesSaysWhatToDo) {
  MadeTrace made;
  made.Device(kH100, 132).Kernel("sm90_bf16_gemm_tensorop", 10, 100, 278);
  const record::Roofline judged = Judged(made);
  EXPECT_THAT(judged.operators, IsEmpty());
  EXPECT_EQ(judged.steps->mfu, std::nullopt) << "not 0: nothing is known";
  EXPECT_EQ(judged.steps->floor_ns, std::nullopt);
  EXPECT_THAT(judged.notes, Contains(HasSubstr("record_shapes=True")));
  EXPECT_EQ(RooflineOf(made.Finish(), kSteps), std::nullopt);
}

TEST(RooflineTest, MatrixKernelsWithoutKnownWorkMakeTheFlopsALowerBound) {
  MadeTrace made = TwoSteps();
  made.Orphan("sm90_bf16_gemm_tensorop", 700, 100);
  const record::Roofline judged = Judged(made);
  EXPECT_EQ(judged.steps->matrix_unknown_ns, 100'000);
  EXPECT_THAT(judged.notes, Contains(HasSubstr("lower bound")));
  EXPECT_THAT(judged.notes, Contains(HasSubstr("launches are not in the trace")));
}

TEST(RooflineTest, WorkIsNotCountedTwiceWhereOperatorsNest) {
  MadeTrace made;
  made.Device(kH100, 132);
  const auto square = Tensor({4096, 4096}, kBf16);
  made.Op("aten::matmul", 0, 50, {square, square}).Op("aten::mm", 5, 30, {square, square});
  made.Kernel("sm90_bf16_gemm_tensorop", 10, 100, 278).Kernel("splitKreduce_kernel", 40, 400, 5);
  const record::Roofline judged = Judged(made);
  EXPECT_DOUBLE_EQ(judged.steps->matrix_flops, 2 * std::pow(4096.0, 3));
  EXPECT_EQ(judged.steps->matrix_unknown_ns, 5'000);
}

TEST(RooflineTest, CollectivesAndCopiesFromTheHostAreNotTheDevicesOwnWork) {
  MadeTrace made = TwoSteps();
  made.Orphan("ncclDevKernel_AllReduce", 600, 100).Orphan("Memcpy HtoD (Pinned -> Device)", 700, 100);
  EXPECT_EQ(Judged(made).steps->device_ns, 836'000);
}

TEST(DeviceOfTest, IsTheOneThatMostRanOn) {
  timeline::DeviceTrace trace;
  trace.devices = {"Tesla T4", kH100};
  trace.device_ops = {{0, 3}, {1, 500}};
  ASSERT_NE(DeviceOf(trace), nullptr);
  EXPECT_STREQ(DeviceOf(trace)->name, "NVIDIA H100 SXM");
}

TEST(DeviceOfTest, IsTheOnlyOneListedWhereItsNumberIsNot) {
  timeline::DeviceTrace trace;
  trace.devices = {kH100};
  trace.device_ops = {{5, 500}};
  EXPECT_NE(DeviceOf(trace), nullptr);
  trace.devices = {kH100, "Tesla T4"};
  EXPECT_EQ(DeviceOf(trace), nullptr) << "it may be either";
}

}  // namespace
}  // namespace fullbore::roofline
