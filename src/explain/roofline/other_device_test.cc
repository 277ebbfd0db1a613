// What another device makes of an operation, from round figures of both.
#include "explain/roofline/other_device.h"

#include <gtest/gtest.h>

namespace fullbore::roofline {
namespace {

using record::Arithmetic;
using record::Lane;
using record::Phase;
using record::StepGraph;

// Half as much bandwidth as `Fast`, a quarter of its arithmetic, and kernels that start in half of the time.
Device Slow() {
  Device device{};
  device.name = "slow";
  device.capability = 80;
  device.bandwidth_gb = 1000;
  device.bus_gb = 30;
  device.tflops = {.fp32 = 10, .fp16 = 100, .bf16 = 100};
  device.reached = {.product_tflops = 80,
                    .attention_tflops = 50,
                    .attention_backward_tflops = 25,
                    .elementwise_gb = 900,
                    .least_product_us = 5,
                    .least_attention_us = 10,
                    .least_reduction_us = 3,
                    .least_elementwise_us = 2};
  return device;
}

Device Fast() {
  Device device = Slow();
  device.name = "fast";
  device.bandwidth_gb *= 2;
  device.bus_gb *= 2;
  device.tflops = {.fp32 = 40, .fp16 = 400, .bf16 = 400};
  device.reached = {.product_tflops = 320,
                    .attention_tflops = 200,
                    .attention_backward_tflops = 100,
                    .elementwise_gb = 1800,
                    .least_product_us = 10,
                    .least_attention_us = 20,
                    .least_reduction_us = 6,
                    .least_elementwise_us = 4};
  return device;
}

StepGraph WithTask(double gflops, double mb, Arithmetic arithmetic) {
  StepGraph graph;
  graph.tasks.push_back({gflops * 1e9, mb * 1e6, arithmetic});
  return graph;
}

StepGraph::Node Kernel(Lane lane, double us, uint32_t task = 0, Phase phase = Phase::kForward) {
  StepGraph::Node node;
  node.work = record::Work::kDevice;
  node.lane = lane;
  node.duration_ns = static_cast<int64_t>(us * 1000);
  node.phase = phase;
  node.task = task;
  return node;
}

double ExpectedUs(const Device& from, const Device& to, const StepGraph& graph, const StepGraph::Node& node) {
  return OnDevice(from, to, graph, node).expected_ns / 1e3;
}

TEST(OtherDeviceTest, ALargeKernelThatMemoryLimitsTakesAsMuchAsTheBandwidthsSay) {
  EXPECT_NEAR(ExpectedUs(Slow(), Fast(), {}, Kernel(Lane::kElementwise, 2002)), 4 + 2000 / 2, 1e-6);
}

TEST(OtherDeviceTest, TheLeastTimeOfAKernelIsThatOfTheOtherDevice) {
  EXPECT_NEAR(ExpectedUs(Slow(), Fast(), {}, Kernel(Lane::kElementwise, 2)), 4, 1e-6);
  EXPECT_NEAR(ExpectedUs(Slow(), Fast(), {}, Kernel(Lane::kAttention, 10)), 20, 1e-6);
  EXPECT_NEAR(ExpectedUs(Slow(), Fast(), {}, Kernel(Lane::kReduction, 3)), 6, 1e-6);
}

TEST(OtherDeviceTest, AKernelBelowTheLeastTimeOfItsClassKeepsItsPartOfIt) {
  EXPECT_NEAR(ExpectedUs(Slow(), Fast(), {}, Kernel(Lane::kElementwise, 1)), 2, 1e-6);
}

TEST(OtherDeviceTest, AKernelOfFewBytesIsLongerByItsLatenciesAndNotByTheMemory) {
  const StepGraph few = WithTask(0, 0.01, Arithmetic::kVector);  // they pass in 11 ns
  EXPECT_NEAR(ExpectedUs(Slow(), Fast(), few, Kernel(Lane::kElementwise, 4, 1)), 8, 0.02);
  const StepGraph many = WithTask(0, 1800, Arithmetic::kVector);
  EXPECT_NEAR(ExpectedUs(Slow(), Fast(), many, Kernel(Lane::kElementwise, 2002, 1)), 4 + 1000, 4);
}

TEST(OtherDeviceTest, AProductTakesAsMuchAsTheArithmeticSays) {
  const StepGraph graph = WithTask(1000, 1, Arithmetic::kFloat16);
  EXPECT_NEAR(ExpectedUs(Slow(), Fast(), graph, Kernel(Lane::kMatmulTensor, 4005, 1)), 10 + 4000 / 4, 1e-6);
}

TEST(OtherDeviceTest, AProductThatMemoryLimitsOnBothTakesAsMuchAsTheBandwidthsSay) {
  const StepGraph graph = WithTask(1, 1000, Arithmetic::kFloat16);
  EXPECT_NEAR(ExpectedUs(Slow(), Fast(), graph, Kernel(Lane::kMatmulTensor, 2005, 1)), 10 + 2000 / 2, 1e-6);
}

TEST(OtherDeviceTest, AttentionHasRatesOfItsOwnInEachDirection) {
  const StepGraph graph = WithTask(1000, 1, Arithmetic::kBFloat16);
  const Device slow = Slow();
  Device other = Fast();
  other.reached.attention_backward_tflops = slow.reached.attention_backward_tflops;
  EXPECT_NEAR(ExpectedUs(slow, other, graph, Kernel(Lane::kAttention, 1010, 1)), 20 + 1000 / 4, 1e-6);
  EXPECT_NEAR(ExpectedUs(slow, other, graph, Kernel(Lane::kAttention, 1010, 1, Phase::kBackward)), 20 + 1000,
              1e-6);
}

TEST(OtherDeviceTest, TheSameDeviceChangesNothing) {
  const Device device = Slow();
  const OnAnother then = OnDevice(device, device, {}, Kernel(Lane::kMatmulTensor, 123));
  EXPECT_EQ(then.expected_ns, 123'000);
  EXPECT_EQ(then.least_ns, 123'000);
  EXPECT_EQ(then.most_ns, 123'000);
}

TEST(OtherDeviceTest, WhatIsNotTheDevicesOwnWorkStays) {
  for (const Lane lane : {Lane::kComm, Lane::kH2dPageable, Lane::kD2hPageable})
    EXPECT_EQ(ExpectedUs(Slow(), Fast(), {}, Kernel(lane, 100)), 100);
}

TEST(OtherDeviceTest, PinnedCopiesTakeTheBus) {
  EXPECT_NEAR(ExpectedUs(Slow(), Fast(), {}, Kernel(Lane::kH2dPinned, 100)), 50, 1e-6);
}

TEST(OtherDeviceTest, WhatHadToBeAssumedMakesTheRangeWider) {
  const auto width = [](const Device& to) {
    const OnAnother then = OnDevice(Slow(), to, {}, Kernel(Lane::kElementwise, 1000));
    EXPECT_LT(then.least_ns, then.expected_ns);
    EXPECT_GT(then.most_ns, then.expected_ns);
    return then.most_ns / then.least_ns;
  };
  Device unmeasured = Fast();
  unmeasured.reached = {};
  EXPECT_GT(width(unmeasured), width(Fast()));
}

TEST(OtherDeviceTest, ADeviceWithoutUnitsForATypeComputesInFloat32) {
  const StepGraph graph = WithTask(1000, 1, Arithmetic::kBFloat16);
  Device without = Slow();
  without.tflops.bf16 = 0;
  EXPECT_GT(ExpectedUs(Slow(), without, graph, Kernel(Lane::kMatmulTensor, 1000, 1)), 5 * 1000);
}

}  // namespace
}  // namespace fullbore::roofline
