// Each section on a scene small enough to compute by hand.
#include <gmock/gmock.h>

#include "explain/analyze/critical_path.h"
#include "explain/analyze/testing/scene.h"

namespace fullbore::analyze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using timeline::SpanKind;

// Stream 7 computes in [10, 30) and [50, 60), stream 20 communicates in [20, 40).
Scene Overlapping() {
  Scene scene;
  scene.Op("gemm", 0, 10, 30).Op("ncclKernel_AllReduce", 6, 20, 40, 1).Op("gemm", 41, 50, 60);
  return scene;
}

TEST(TemporalBreakdownTest, DividesTheSpanIntoIdleComputeAndTheRest) {
  const Table table = Overlapping().Make("temporal-breakdown");
  EXPECT_THAT(
      Rows(table, {"span_ns", "idle_ns", "compute_ns", "non_compute_ns", "comm_ns", "comm_exposed_ns"}),
      ElementsAre("50000, 10000, 30000, 10000, 20000, 10000"));
  EXPECT_THAT(Rows(table, {"idle_ratio", "compute_ratio", "non_compute_ratio"}),
              ElementsAre("0.2, 0.6, 0.2"));
}

TEST(OverlapTest, IsTheShareOfCommunicationBehindComputation) {
  EXPECT_THAT(Rows(Overlapping().Make("overlap"), {"comm_ns", "overlapped_ns", "overlap_ratio"}),
              ElementsAre("20000, 10000, 0.5"));
}

TEST(OverlapTest, WithoutCollectivesTheRatioIsUnknownAndNotZero) {
  const Table table = Scene().Op("gemm", 0, 10, 20).Make("overlap");
  EXPECT_THAT(Rows(table, {"comm_ns", "overlap_ratio"}), ElementsAre("0, "));
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("no collective")));
}

TEST(KernelTypesTest, SaysWhatRanTogether) {
  EXPECT_THAT(
      Rows(Overlapping().Make("kernel-types"), {"by", "what", "count", "sum_ns"}),
      ElementsAre("together, comm, , 10000", "together, compute, , 20000", "together, compute+comm, , 10000",
                  "class, matmul, 2, 30000", "class, comm, 1, 20000"));
}

TEST(IdleBreakdownTest, TellsHostWaitKernelWaitAndTheRestApart) {
  Scene scene;
  scene.Op("a", 0, 10, 20)
      .Op("b", 25, 30, 40)     // launched after a had ended: 10 us for the host
      .Op("c", 31, 44, 50)     // queued: 4 us from kernel to kernel
      .Op("d", 37, 150, 160);  // queued, and 100 us later
  EXPECT_THAT(Rows(scene.Make("idle-breakdown"), {"stream", "category", "count", "idle_ns"}),
              ElementsAre("0/7, host_wait, 1, 10000", "0/7, kernel_wait, 1, 4000", "0/7, other, 1, 100000"));
}

TEST(IdleBreakdownTest, SaysWhereLaunchesAreMissing) {
  const Table table = Scene().Orphan("a", 0, 10).Orphan("b", 12, 20).Make("idle-breakdown");
  EXPECT_THAT(Rows(table, {"category", "idle_ns"}), ElementsAre("kernel_wait, 2000"));
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("launch of 1 operations")));
}

TEST(KernelsTest, CountsSumsAndRanksByName) {
  Scene scene;
  scene.Op("gemm", 0, 10, 20).Op("gemm", 1, 20, 50).Op("relu_elementwise", 2, 50, 51);
  EXPECT_THAT(Rows(scene.Make("kernels"),
                   {"class", "name", "count", "sum_ns", "mean_ns", "min_ns", "median_ns", "max_ns"}),
              ElementsAre("matmul, gemm, 2, 40000, 20000, 10000, 20000, 30000",
                          "elementwise, relu_elementwise, 1, 1000, 1000, 1000, 1000, 1000"));
}

TEST(LaunchesTest, HaveCallDeviceAndDelay) {
  Scene scene;
  scene.Op("slow", 0, 10, 30).Op("fast", 30, 32, 33);  // the second begins while its call still runs
  EXPECT_THAT(Rows(scene.Make("launches"), {"t_ns", "name", "call_ns", "device_ns", "delay_ns"}),
              ElementsAre("0, slow, 5000, 20000, 5000", "30000, fast, 5000, 1000, 0"));
}

TEST(LaunchSummaryTest, CountsShortKernelsLongCallsAndLongDelays) {
  Scene scene;
  scene.Op("a", 0, 10, 11).Op("b", 10, 300, 400).Op("c", 20, 500, 600, 0, 80).Orphan("d", 700, 800);
  const Table table = scene.Make("launch-summary");
  EXPECT_THAT(Rows(table, {"type", "count", "shorter_than_call", "long_calls", "long_delays"}),
              ElementsAre("kernel, 3, 1, 1, 2"));
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("1 operations are left out")));
}

TEST(QueueTest, GrowsAtTheLaunchAndShrinksAtTheBegin) {
  Scene scene;
  scene.Op("a", 0, 10, 20).Op("b", 5, 20, 30);
  EXPECT_THAT(Rows(scene.Make("queue-length"), {"stream", "t_ns", "length"}),
              ElementsAre("0/7, 0, 1", "0/7, 5000, 2", "0/7, 10000, 1", "0/7, 20000, 0"));
}

TEST(QueueTest, TheSummaryWeighsByTime) {
  Scene scene;
  scene.Op("a", 0, 10, 20).Op("b", 30, 40, 50);  // 10 us at 1, 20 us at 0, 10 us at 1
  EXPECT_THAT(Rows(scene.Make("queue-summary"),
                   {"launches", "span_ns", "mean_length", "max_length", "empty_ns", "full_ns"}),
              ElementsAre("2, 40000, 0.5, 1, 20000, 0"));
}

TEST(MemoryTest, BandwidthAddsUpWhereCopiesOverlap) {
  Scene scene;
  scene.Op("Memcpy HtoD (Pinned -> Device)", 0, 10, 20).Bytes(10'000);     // 1 GB/s
  scene.Op("Memcpy HtoD (Pinned -> Device)", 1, 15, 20, 1).Bytes(10'000);  // 2 GB/s
  EXPECT_THAT(Rows(scene.Make("memory-bandwidth"), {"kind", "t_ns", "bandwidth_bytes_per_s"}),
              ElementsAre("copy_h2d_pinned, 10000, 1000000000", "copy_h2d_pinned, 15000, 3000000000",
                          "copy_h2d_pinned, 20000, 2000000000", "copy_h2d_pinned, 20000, 0"));
  EXPECT_THAT(Rows(scene.Make("memory-summary"), {"count", "bytes", "sum_ns", "median_bytes_per_s"}),
              ElementsAre("2, 20000, 15000, 1500000000"));
}

TEST(OperatorsTest, HaveTheDeviceTimeOfWhatTheyLaunched) {
  Scene scene;
  scene.Span("aten::linear", 0, 20).Op("gemm", 5, 30, 50).Op("bias", 12, 50, 55);
  scene.Span("aten::relu", 25, 40).Op("relu", 30, 60, 61).Op("alone", 50, 70, 71);
  const Table table = scene.Make("operators");
  EXPECT_THAT(Rows(table, {"operator", "count", "host_ns", "operations", "device_ns"}),
              ElementsAre("aten::linear, 1, 20000, 2, 25000", "aten::relu, 1, 15000, 1, 1000"));
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("1 device operations")));
}

TEST(SequencesTest, AreWhatAnOperatorLaunchesAgainAndAgain) {
  Scene scene;
  for (const int64_t t : {0, 100}) {
    scene.Span("aten::norm", t, t + 30);
    scene.Op("square", t + 1, t + 40, t + 45)
        .Op("sum", t + 8, t + 45, t + 50)
        .Op("root", t + 16, t + 50, t + 51);
  }
  scene.Span("aten::once", 200, 230).Op("x", 201, 240, 241).Op("x", 208, 241, 242).Op("y", 216, 242, 243);
  EXPECT_THAT(Rows(scene.Make("sequences"), {"launched_by", "length", "count", "device_ns", "kernels"}),
              ElementsAre("aten::norm, 3, 2, 22000, square | sum | root"));
}

TEST(SequencesTest, WithoutOperatorsTheyAreWindowsOfAStream) {
  Scene scene;
  for (int64_t t = 0; t < 100; t += 50)
    scene.Orphan("a", t, t + 1).Orphan("b", t + 2, t + 3).Orphan("b", t + 4, t + 5).Orphan("c", t + 6, t + 7);
  const Table table = scene.Make("sequences");
  EXPECT_THAT(Rows(table, {"launched_by", "count", "kernels"}), ElementsAre("stream 0/7, 2, a | b x2 | c"));
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("no operators")));
}

TEST(CountersTest, AreTiedToLaunchesInTheirOrder) {
  Scene scene;
  scene.Span("aten::linear", 0, 20).Op("gemm", 5, 30, 50);
  auto& names = scene.trace().names;
  scene.trace().kernel_counters.push_back({30'000, 0, names.Find("gemm"), names.Find("inst_executed"), 1234});
  EXPECT_THAT(Rows(scene.Make("counters"), {"counter", "value", "kernel", "launched_by"}),
              ElementsAre("inst_executed, 1234, gemm, aten::linear"));
}

TEST(StepsTest, HaveTheNumbersOfTheProfiler) {
  Scene scene;
  scene.Step(12, 0, 50).Step(13, 50, 100).Op("a", 0, 10, 20).Op("b", 55, 60, 80);
  EXPECT_THAT(Rows(scene.Make("steps"), {"step", "begin_ns", "wall_ns", "compute_ns"}),
              ElementsAre("12, 0, 50000, 10000", "13, 50000, 50000, 20000"));
}

// ---- the critical path ----

std::vector<std::string> Path(Scene& scene) {
  return Rows(scene.Make("critical-path"), {"bound_by", "pieces", "sum_ns"});
}

TEST(CriticalPathTest, QueuedKernelsFollowOneAnother) {
  Scene scene;
  scene.Span("aten::op", 0, 30).Op("gemm", 5, 20, 60).Op("gemm", 12, 62, 90);
  EXPECT_THAT(Path(scene), ElementsAre("gpu_compute, 2, 68000", "kernel_kernel, 1, 2000",
                                       "kernel_launch, 1, 15000", "host, 1, 5000"));
}

TEST(CriticalPathTest, ASlowHostIsOnThePathInsteadOfTheKernelBefore) {
  Scene scene;
  scene.Span("aten::op", 0, 100).Op("gemm", 5, 12, 20).Op("gemm", 80, 88, 98);
  EXPECT_THAT(Path(scene), ElementsAre("gpu_compute, 1, 10000", "kernel_launch, 1, 8000", "host, 1, 80000"));
}

TEST(CriticalPathTest, ASynchronisationLeadsBackToTheDevice) {
  Scene scene;
  scene.Span("aten::op", 0, 10)
      .Op("gemm", 5, 12, 50)
      .Sync(11, 53)
      .Span("aten::op", 53, 70)
      .Op("gemm", 60, 67, 90);
  EXPECT_THAT(Path(scene), ElementsAre("gpu_compute, 2, 61000", "kernel_launch, 2, 14000", "host, 2, 12000",
                                       "sync, 1, 3000"));
}

TEST(CriticalPathTest, TheLoaderIsNamed) {
  Scene scene;
  scene.Span("enumerate(DataLoader)", 0, 40, SpanKind::kLoader)
      .Span("aten::op", 40, 60)
      .Op("gemm", 50, 58, 70);
  EXPECT_THAT(Path(scene), ElementsAre("gpu_compute, 1, 12000", "kernel_launch, 1, 8000", "host, 1, 10000",
                                       "data_loader, 1, 40000"));
}

TEST(CriticalPathTest, ADependencyBetweenStreamsIsAssumedAndSaidSo) {
  Scene scene;
  scene.Span("aten::op", 0, 30)
      .Op("gemm", 5, 12, 20)
      .Op("ncclKernel_AllReduce", 11, 21, 120, 1)
      .Op("gemm", 18, 121, 150);
  const Table table = scene.Make("critical-path");
  EXPECT_THAT(Rows(table, {"bound_by", "sum_ns"}),
              ElementsAre("gpu_compute, 29000", "gpu_comm, 99000", "kernel_kernel, 1000",
                          "kernel_launch, 10000", "host, 11000"));
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("no synchronisation events"), HasSubstr("1 times")));
}

TEST(CriticalPathTest, TheBackwardPassOfAnotherThreadIsTheHostsWork) {
  constexpr uint16_t kAutograd = 1;
  Scene
      scene;  // the main thread records nothing while autograd's works for 4 ms, then launches the optimizer
  scene.Step(1, 0, 5000).Span("aten::op", 0, 500).Op("gemm", 5, 12, 20);
  scene.Span("AddBackward0", 500, 4500, SpanKind::kBackward, kAutograd)
      .Op("gemm", 4000, 4007, 4010, 0, 5, kAutograd);
  scene.Span("aten::add_", 4500, 5000).Op("sgd", 4900, 4907, 4950);
  EXPECT_THAT(Path(scene),
              ElementsAre("gpu_compute, 1, 43000", "kernel_launch, 1, 7000", "host, 1, 4900000"));
}

TEST(CriticalPathTest, WhatNothingExplainsCannotBeTold) {
  Scene scene;
  scene.Span("aten::op", 0, 30).Op("gemm", 5, 12, 20).Op("gemm", 12, 120, 150);
  EXPECT_THAT(Path(scene), ElementsAre("gpu_compute, 2, 38000", "kernel_launch, 1, 7000", "host, 1, 5000",
                                       "cannot_be_told, 1, 100000"));
}

TEST(CriticalPathTest, LeavesNoHole) {
  Scene scene;
  scene.Span("aten::op", 0, 30).Op("a", 5, 12, 20).Op("b", 6, 14, 90, 1).Op("c", 12, 95, 150).Sync(31, 160);
  scene.Span("aten::op", 160, 170).Op("d", 165, 172, 173);
  scene.trace().Finish();
  const CriticalPath path = FindCriticalPath(RankTrace(scene.trace()));
  ASSERT_FALSE(path.pieces.empty());
  EXPECT_EQ(path.pieces.front().begin_ns, 0);
  EXPECT_EQ(path.pieces.back().end_ns, 173'000);
  for (size_t i = 1; i < path.pieces.size(); ++i)
    EXPECT_EQ(path.pieces[i - 1].end_ns, path.pieces[i].begin_ns) << i;
}

// ---- all of them ----

TEST(SectionsTest, NoneMindsAnEmptyTrace) {
  for (const Section* section : AllSections()) {
    Scene scene;
    EXPECT_THAT(scene.Make(section->name).rows, IsEmpty()) << section->name;
  }
}

TEST(SectionsTest, EveryRowHasACellForEveryColumn) {
  Scene scene = Overlapping();
  scene.Op("Memcpy HtoD (Pinned -> Device)", 70, 80, 90)
      .Bytes(10)
      .Sync(90, 95)
      .Span("aten::op", 0, 10)
      .Shaped("aten::mm", 0, 5, {{4, 4}, {4, 4}})
      .Step(1, 0, 100);
  scene.trace().counters["device_memory_reserved/0"] = {{1000, 5}};
  for (const Section* section : AllSections()) {
    const Table table = scene.Make(section->name);
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), section->columns.size()) << section->name;
    const std::string_view name = section->name;
    if (name == "sequences" || name == "roofline-chains") continue;  // nothing repeats, nothing is a chain
    EXPECT_THAT(table.rows, Not(IsEmpty())) << section->name;
  }
}

}  // namespace
}  // namespace fullbore::analyze
