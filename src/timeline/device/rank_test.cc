// From events to shares: each test is one small scene of host and device.
#include "timeline/device/rank.h"

#include <gmock/gmock.h>

#include <numeric>

namespace fullbore::timeline {
namespace {

using record::HostOther;
using record::Share;

constexpr uint16_t kMain = 0;
constexpr uint16_t kAutograd = 1;

// Times in microseconds: what the host does and what the device does.
class Scene {
 public:
  Scene() { trace_.threads = {"main", "autograd"}; }

  Scene& Kernel(int64_t launch, int64_t begin, int64_t end, uint16_t thread = kMain,
                const char* name = "volta_sgemm") {
    Call(launch, launch + 5, CallKind::kLaunch, thread);
    DeviceOp op = Op(begin, end, name);
    op.correlation = next_;
    op.kernel = true;
    op.lane = ClassifyKernel(name);
    trace_.ops.push_back(op);
    return *this;
  }
  Scene& PageableCopy(int64_t call_begin, int64_t call_end, int64_t begin, int64_t end) {
    Call(call_begin, call_end, CallKind::kCopy, kMain);
    DeviceOp op = Op(begin, end, "Memcpy HtoD (Pageable -> Device)");
    op.correlation = next_;
    op.lane = Lane::kH2dPageable;
    trace_.ops.push_back(op);
    return *this;
  }
  Scene& OrphanKernel(int64_t begin, int64_t end) {
    DeviceOp op = Op(begin, end, "orphan");
    op.kernel = true;
    trace_.ops.push_back(op);
    return *this;
  }
  Scene& Sync(int64_t begin, int64_t end, uint16_t thread = kMain) {
    return Call(begin, end, CallKind::kSync, thread, "cudaStreamSynchronize");
  }
  Scene& Span(SpanKind kind, int64_t begin, int64_t end, uint16_t thread = kMain,
              const char* name = "aten::op") {
    trace_.spans.push_back({begin * 1000, end * 1000, trace_.names.Find(name), thread, kind});
    return *this;
  }
  Scene& Work(int64_t begin, int64_t end, uint16_t thread = kMain) {
    return Span(SpanKind::kOp, begin, end, thread);
  }
  Scene& Step(int64_t number, int64_t begin, int64_t end) {
    trace_.steps.push_back({begin * 1000, end * 1000, number, kMain});
    return *this;
  }

  RankResult Summarise() {
    trace_.Finish();
    return SummariseRank(trace_);
  }
  record::Step OnlyStep() {
    RankResult result = Summarise();
    EXPECT_EQ(result.info.steps.size(), 1U);
    const record::Step step = result.info.steps.empty() ? record::Step{} : result.info.steps[0];
    EXPECT_EQ(std::accumulate(step.share_ns.begin(), step.share_ns.end(), int64_t{0}), step.wall_ns);
    return step;
  }

 private:
  DeviceOp Op(int64_t begin, int64_t end, const char* name) {
    DeviceOp op;
    op.begin_ns = begin * 1000;
    op.end_ns = end * 1000;
    op.name = trace_.names.Find(name);
    return op;
  }
  Scene& Call(int64_t begin, int64_t end, CallKind kind, uint16_t thread, const char* name = "call") {
    trace_.calls.push_back({begin * 1000, end * 1000, ++next_, trace_.names.Find(name), thread, kind});
    return *this;
  }

  DeviceTrace trace_;
  uint32_t next_ = 0;
};

int64_t Us(const record::Step& step, Share share) { return step.share_ns[Index(share)] / 1000; }

TEST(DeviceIdleTest, TimeBetweenQueuedKernelsIsAGap) {
  const auto step = Scene().Step(1, 0, 200).Kernel(0, 10, 50).Kernel(6, 60, 200).OnlyStep();
  EXPECT_EQ(Us(step, Share::kGap), 10);
  EXPECT_EQ(Us(step, Share::kCompute), 180);
}

TEST(DeviceIdleTest, ALateLaunchCountsAsLaunch) {
  const auto step = Scene().Step(1, 0, 200).Work(0, 200).Kernel(0, 0, 50).Kernel(90, 100, 200).OnlyStep();
  EXPECT_EQ(Us(step, Share::kLaunch), 50);
}

TEST(DeviceIdleTest, WaitingInTheLoaderIsDataWait) {
  const auto step = Scene()
                        .Step(1, 0, 200)
                        .Kernel(0, 0, 50)
                        .Span(SpanKind::kLoader, 20, 90)
                        .Kernel(95, 100, 200)
                        .OnlyStep();
  EXPECT_EQ(Us(step, Share::kDataWait), 40);
  EXPECT_EQ(Us(step, Share::kLaunch), 10);
}

TEST(DeviceIdleTest, AutogradThatPausesForAMomentIsOnItsWayThoughTheMainThreadWaitsForItAllTheTime) {
  const auto step = Scene()
                        .Step(1, 0, 8000)
                        .Work(0, 20)
                        .Kernel(0, 10, 100)
                        .Work(100, 4000, kAutograd)
                        .Kernel(110, 120, 4000, kAutograd)
                        .Work(4060, 7980, kAutograd)
                        .Kernel(4060, 4070, 7990, kAutograd)
                        .Work(7990, 8000)
                        .OnlyStep();
  EXPECT_EQ(Us(step, Share::kHostOther), 0);
  EXPECT_EQ(Us(step, Share::kLaunch), 10 + 20 + 70 + 10);
}

TEST(DeviceIdleTest, ALongSilenceBetweenRecordedCallsIsUnnamedEvenIfNoOperatorIsRecorded) {
  const auto step = Scene().Step(1, 0, 9000).Kernel(0, 0, 50).Kernel(8950, 8960, 9000).OnlyStep();
  EXPECT_EQ(Us(step, Share::kHostOther), 8900);
  EXPECT_EQ(Us(step, Share::kLaunch), 10);
}

TEST(DeviceIdleTest, ASilenceThatOperatorsWithoutACallCanFillIsOnTheWayToTheLaunch) {
  const auto step = Scene().Step(1, 0, 5000).Kernel(0, 0, 50).Kernel(4950, 4960, 5000).OnlyStep();
  EXPECT_EQ(Us(step, Share::kHostOther), 0);
  EXPECT_EQ(Us(step, Share::kLaunch), 4910);
}

TEST(DeviceIdleTest, TheProcessFirstThreadIsTheMainOneThoughAutogradLaunchesMore) {
  DeviceTrace trace;
  trace.pid = 4000;
  trace.threads = {"4000/4050", "4000/4000"};
  for (uint16_t i = 0; i < 3; ++i) trace.calls.push_back({i * 10, i * 10 + 5, i, 0, 0, CallKind::kLaunch});
  trace.calls.push_back({100, 105, 9, 0, 1, CallKind::kLaunch});
  trace.Finish();
  EXPECT_EQ(trace.main_thread(), 1);
}

TEST(DeviceIdleTest, TheMainThreadsLoaderExplainsAnIdleAutogradThread) {
  const auto step = Scene()
                        .Step(1, 0, 200)
                        .Kernel(0, 0, 50)
                        .Span(SpanKind::kLoader, 20, 90)
                        .Kernel(95, 100, 200, kAutograd)
                        .OnlyStep();
  EXPECT_EQ(Us(step, Share::kDataWait), 40);
}

TEST(DeviceIdleTest, ASynchronisationIsChargedWithTheLaunchAfterIt) {
  RankResult result = Scene()
                          .Step(1, 0, 200)
                          .Kernel(0, 0, 50)
                          .Span(SpanKind::kOp, 18, 57, kMain, "aten::item")
                          .Sync(20, 55)
                          .Kernel(90, 100, 150)
                          .Kernel(170, 180, 200)
                          .Summarise();
  ASSERT_EQ(result.info.steps.size(), 1U);
  EXPECT_EQ(Us(result.info.steps[0], Share::kSync), 50);
  EXPECT_EQ(Us(result.info.steps[0], Share::kLaunch), 30)
      << "the next late launch is not the synchronisation's";
  ASSERT_EQ(result.info.tables->syncs.size(), 1U);
  EXPECT_EQ(result.info.tables->syncs[0].where, "aten::item");
  EXPECT_EQ(result.info.tables->syncs[0].idle_ns, 50'000);
  EXPECT_EQ(result.info.tables->syncs[0].blocked_ns, 35'000);
}

TEST(DeviceIdleTest, APageableCopyHoldsTheThreadUntilItIsDone) {
  const auto step = Scene()
                        .Step(1, 0, 200)
                        .Kernel(0, 0, 50)
                        .PageableCopy(60, 125, 80, 120)
                        .Kernel(126, 130, 200)
                        .OnlyStep();
  EXPECT_EQ(Us(step, Share::kCopyExposed), 40);
  EXPECT_EQ(Us(step, Share::kSync), 20 + 5 + 5)
      << "before the copy, in the call behind it, and the new launch";
  EXPECT_EQ(Us(step, Share::kLaunch), 10);
}

TEST(DeviceIdleTest, CheckpointsAndLongAbsencesAreHostOther) {
  const auto step = Scene()
                        .Step(1, 0, 8000)
                        .Work(0, 10)
                        .Kernel(0, 0, 50)
                        .Span(SpanKind::kCheckpoint, 60, 2060)
                        .Work(2060, 2100)
                        .Work(5100, 5110)
                        .Kernel(5110, 5120, 8000)
                        .OnlyStep();
  EXPECT_EQ(Us(step, Share::kHostOther), 2000 + 3000);
  EXPECT_EQ(step.host_other_ns[static_cast<size_t>(HostOther::kCheckpoint)], 2'000'000);
  EXPECT_EQ(step.host_other_ns[static_cast<size_t>(HostOther::kUnnamed)], 3'000'000);
  EXPECT_EQ(Us(step, Share::kLaunch), 10 + 40 + 20);
}

TEST(DeviceIdleTest, WithoutAnyHostEventsTheCauseIsNotGuessed) {
  RankResult result = Scene().OrphanKernel(0, 50).OrphanKernel(80, 100).Summarise();
  ASSERT_EQ(result.info.steps.size(), 1U);
  EXPECT_EQ(Us(result.info.steps[0], Share::kLaunch), 0);
  EXPECT_EQ(Us(result.info.steps[0], Share::kHostOther), 30);
  EXPECT_THAT(result.notes, ::testing::Contains(::testing::HasSubstr("launch is not in the trace")));
}

TEST(DeviceStepsTest, AStepEndsWithItsLastKernelAndTheNextBeginsThere) {
  RankResult result =
      Scene().Step(1, 0, 100).Step(2, 101, 200).Kernel(10, 20, 150).Kernel(110, 150, 260).Summarise();
  ASSERT_EQ(result.info.steps.size(), 2U);
  EXPECT_EQ(result.info.steps[0].wall_ns, 150'000);
  EXPECT_EQ(result.info.steps[1].end_ns, 260'000);
  EXPECT_EQ(result.info.steps[1].wall_ns, 110'000);
}

TEST(DeviceStepsTest, StepsThatDoNotFollowEachOtherLeaveAHole) {
  RankResult result =
      Scene().Step(1, 0, 100).Step(7, 500, 600).Kernel(10, 20, 90).Kernel(510, 520, 590).Summarise();
  ASSERT_EQ(result.info.steps.size(), 2U);
  EXPECT_EQ(result.info.steps[1].wall_ns, 100'000);
}

TEST(DeviceStepsTest, WithoutMarksTheOptimizersStepEndsAStep) {
  Scene scene;
  for (int i = 0; i < 4; ++i) {
    scene.Kernel(i * 100 + 10, i * 100 + 20, i * 100 + 60);
    scene.Span(SpanKind::kOptimizer, i * 100 + 70, i * 100 + 80, kMain, "Optimizer.step#SGD.step");
  }
  RankResult result = scene.Summarise();
  ASSERT_EQ(result.info.steps.size(), 3U);
  EXPECT_EQ(result.info.steps[1].wall_ns, 100'000);
  EXPECT_THAT(result.notes, ::testing::Contains(::testing::HasSubstr("optimizer")));
}

TEST(DeviceStepsTest, WithoutAnOptimizerTheRarestPeriodicKernelMarksTheSteps) {
  Scene scene;
  for (int step = 0; step < 8; ++step) {
    for (int layer = 0; layer < 10; ++layer) {
      const int64_t t = step * 1000 + layer * 90;
      scene.Kernel(t, t + 10, t + 40, kMain, "layer_gemm");
      scene.Kernel(t + 5, t + 45, t + 80, kMain, "layer_softmax");
    }
    scene.Kernel(step * 1000 + 900, step * 1000 + 910, step * 1000 + 950, kMain, "multi_tensor_apply");
  }
  RankResult result = scene.Summarise();
  ASSERT_EQ(result.info.steps.size(), 7U);
  for (const record::Step& step : result.info.steps) EXPECT_EQ(step.wall_ns, 1'000'000);
  EXPECT_EQ(result.info.noticed.steps_by, record::StepsBy::kPeriod);
}

// Four steps of a loop with 21 kernels each, of which the last occurs once.
Scene FourUnmarkedSteps(bool in_the_same_order) {
  Scene scene;
  for (int step = 0; step < 4; ++step) {
    for (int layer = 0; layer < 20; ++layer) {
      const int64_t t = step * 1000 + layer * 40;
      const bool other = !in_the_same_order && (step + layer) % 2 == 1;
      scene.Kernel(t, t + 10, t + 40, kMain, other ? "layer_softmax" : "layer_gemm");
    }
    scene.Kernel(step * 1000 + 900, step * 1000 + 910, step * 1000 + 950, kMain, "multi_tensor_apply");
  }
  return scene;
}

TEST(DeviceStepsTest, ThreePeriodsAreStepsIfTheyHoldTheSameKernels) {
  RankResult result = FourUnmarkedSteps(true).Summarise();
  ASSERT_EQ(result.info.steps.size(), 3U);
  for (const record::Step& step : result.info.steps) EXPECT_EQ(step.wall_ns, 1'000'000);
}

TEST(DeviceStepsTest, ThreePeriodsOfOtherKernelsAreNoSteps) {
  RankResult result = FourUnmarkedSteps(false).Summarise();
  EXPECT_EQ(result.info.steps.size(), 1U);
}

TEST(DeviceStepsTest, TheFirstStepBeginsWhereTheWorkLaunchedBeforeItEnds) {
  Scene scene;
  for (int i = 0; i < 4; ++i) {  // the device is 500 us behind the host
    scene.Kernel(i * 100 + 10, i * 100 + 520, i * 100 + 620);
    scene.Span(SpanKind::kOptimizer, i * 100 + 70, i * 100 + 80, kMain, "Optimizer.step#SGD.step");
  }
  RankResult result = scene.Summarise();
  ASSERT_EQ(result.info.steps.size(), 3U);
  for (const record::Step& step : result.info.steps) EXPECT_EQ(step.wall_ns, 100'000);
}

TEST(DeviceStepsTest, TheFirstStepBeginsWhereTheWorkInFlightEnds) {
  Scene scene;
  scene.OrphanKernel(-50, 400).Step(1, 0, 100).Step(2, 100, 200);
  scene.Kernel(10, 400, 500).Kernel(110, 500, 600);
  RankResult result = scene.Summarise();
  ASSERT_EQ(result.info.steps.size(), 2U);
  for (const record::Step& step : result.info.steps) EXPECT_EQ(step.wall_ns, 100'000);
}

TEST(DeviceStepsTest, WhereNoLaunchIsRecordedNothingCountsAsInFlight) {
  RankResult result = Scene().OrphanKernel(10, 90).OrphanKernel(90, 180).Step(1, 0, 200).Summarise();
  ASSERT_EQ(result.info.steps.size(), 1U);
  EXPECT_EQ(result.info.steps[0].wall_ns, 200'000);
}

TEST(DeviceStepsTest, WithoutAnyPeriodTheWholeTraceIsOneStepAndThatIsNoticed) {
  RankResult result = Scene().Kernel(0, 10, 50).Kernel(20, 60, 90, kMain, "other").Summarise();
  ASSERT_EQ(result.info.steps.size(), 1U);
  EXPECT_EQ(result.info.steps[0].wall_ns, 80'000);
  EXPECT_EQ(result.info.noticed.steps_by, record::StepsBy::kNothing);
}

TEST(DeviceTablesTest, KernelsAreSummedByNameAndLaunchesAreCounted) {
  RankResult result =
      Scene().Kernel(0, 10, 50).Kernel(10, 50, 52).Kernel(60, 70, 80, kMain, "triton_poi_add").Summarise();
  const record::DeviceTables& tables = *result.info.tables;
  ASSERT_EQ(tables.kernels.size(), 2U);
  EXPECT_EQ(tables.kernels[0].name, "volta_sgemm");
  EXPECT_EQ(tables.kernels[0].count, 2);
  EXPECT_EQ(tables.kernels[0].sum_ns, 42'000);
  EXPECT_EQ(tables.kernels[0].min_ns, 2'000);
  EXPECT_EQ(tables.kernels[0].kernel_class, "matmul");
  EXPECT_EQ(tables.kernels[1].kernel_class, "elementwise");
  EXPECT_EQ(tables.launches->count, 3);
  EXPECT_EQ(tables.launches->short_kernels, 1);
  EXPECT_EQ(tables.launches->late, 1);
}

TEST(DeviceTablesTest, ExposedTimeOfACollectiveIsWhatNoKernelCovers) {
  RankResult result = Scene()
                          .Kernel(0, 10, 50)
                          .Kernel(5, 20, 100, kMain, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL")
                          .Summarise();
  const auto& collectives = result.info.tables->collectives;
  ASSERT_EQ(collectives.size(), 1U);
  EXPECT_EQ(collectives[0].kind, "reduce_scatter");
  EXPECT_EQ(collectives[0].sum_ns, 80'000);
  EXPECT_EQ(collectives[0].exposed_ns, 50'000);
  EXPECT_EQ(result.info.comm_exposed_ns, 50'000);
}

TEST(DeviceWindowsTest, StepsAreSummedByTheSecond) {
  Scene scene;
  for (int i = 0; i < 30; ++i) {
    scene.Step(i, i * 100'000, (i + 1) * 100'000);
    scene.Kernel(i * 100'000, i * 100'000 + 10, i * 100'000 + 1000);
  }
  RankResult result = scene.Summarise();
  int64_t steps = 0;
  for (const record::StepWindow& window : result.info.windows) {
    EXPECT_LE(window.end_ns - window.begin_ns, 1'000'000'000);
    steps += window.steps;
  }
  EXPECT_EQ(result.info.windows.size(), 3U);
  EXPECT_EQ(steps, 30);
}

}  // namespace
}  // namespace fullbore::timeline
