#include "timeline/device/exchanges.h"

#include <gtest/gtest.h>

namespace fullbore::timeline {
namespace {

// A step as host spans and operations: the training thread is 0, autograd's 1.
class Step {
 public:
  Step() { trace_.threads = {"1/1", "1/2"}; }

  void Pass(SpanKind kind, int64_t from, int64_t to) {
    trace_.spans.push_back({from, to, 0, static_cast<uint16_t>(kind == SpanKind::kBackward ? 1 : 0), kind});
  }
  void Kernel(const char* name, int64_t launched, uint16_t thread, int64_t bytes = -1,
              const char* group = "") {
    DeviceOp op;
    op.name = trace_.names.Find(name);
    op.lane = ClassifyKernel(name);
    op.begin_ns = launched + 1;
    op.end_ns = launched + 2;
    op.launch_begin_ns = launched;
    op.launch_end_ns = launched + 1;
    op.launch_thread = thread;
    op.call = 0;
    if (op.lane == Lane::kComm) {
      op.detail = static_cast<uint32_t>(trace_.collectives.size());
      trace_.collectives.push_back({0, trace_.names.Find(group), bytes, 8});
    }
    trace_.ops.push_back(op);
  }
  std::vector<bool> Activations() { return CarryingActivations(trace_, Phases(trace_)); }
  DeviceTrace& trace() { return trace_; }

 private:
  DeviceTrace trace_;
};

constexpr char kAllReduce[] = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL";

TEST(DeviceExchangesTest, AllReducesOfTheForwardPassAndTheirGroupCarryActivations) {
  Step step;
  step.Pass(SpanKind::kBackward, 40, 80);
  step.Pass(SpanKind::kOptimizer, 90, 100);
  step.Kernel("gemm", 0, 0);
  step.Kernel(kAllReduce, 10, 0, 1000, "tensor");
  step.Kernel("gemm", 50, 1);
  step.Kernel(kAllReduce, 60, 1, 1000, "tensor");
  step.Kernel(kAllReduce, 70, 1, 5000, "data");
  step.Kernel("adam", 95, 0);
  EXPECT_EQ(step.Activations(), (std::vector<bool>{false, true, false, true, false, false}));
}

TEST(DeviceExchangesTest, ALossThatIsAveragedOverRanksDoesNotMakeGradientsActivations) {
  Step step;
  step.Pass(SpanKind::kBackward, 40, 80);
  step.Kernel(kAllReduce, 10, 0, 4, "data");
  step.Kernel("gemm", 50, 1);
  step.Kernel(kAllReduce, 60, 1, 5000, "data");
  EXPECT_EQ(step.Activations(), (std::vector<bool>{false, false, false}));
}

TEST(DeviceExchangesTest, WhatTheTrainingThreadSendsBehindTheBackwardPassAreGradients) {
  Step step;
  step.Pass(SpanKind::kBackward, 40, 80);
  step.Pass(SpanKind::kOptimizer, 100, 110);
  step.Kernel("gemm", 50, 1);
  step.Kernel(kAllReduce, 90, 0, 5000);
  step.Kernel("adam", 105, 0);
  EXPECT_EQ(step.Activations(), (std::vector<bool>{false, false, false}));
}

TEST(DeviceExchangesTest, WithoutRecordedPassesAllReducesAreNotKnownToCarryActivations) {
  Step step;
  step.Kernel("gemm", 0, 0);
  step.Kernel(kAllReduce, 10, 0, 1000);
  EXPECT_EQ(step.Activations(), (std::vector<bool>{false, false}));
}

TEST(DeviceExchangesTest, AllToAllAndKernelsOfInferenceCarryActivations) {
  Step step;
  step.Kernel("void deep_ep::internode_ll::dispatch<true>()", 10, 0);
  step.Kernel("void vllm::cross_device_reduce_1stage<half, 8>()", 20, 0);
  step.Kernel("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", 30, 0);
  EXPECT_EQ(step.Activations(), (std::vector<bool>{true, true, false}));
  step.trace().noticed.engine = "vLLM";
  EXPECT_EQ(step.Activations(), (std::vector<bool>{true, true, true}));
}

}  // namespace
}  // namespace fullbore::timeline
