#include "timeline/device/sweep.h"

#include <gmock/gmock.h>

#include <random>
#include <vector>

#include "timeline/device/totals.h"

namespace fullbore::timeline {
namespace {

struct Recorder : DeviceSweep::Sink {
  void Take(const Segment& segment) override {
    if (!segments.empty()) {
      EXPECT_EQ(segments.back().end_ns, segment.begin_ns) << "a hole between segments";
    }
    EXPECT_LT(segment.begin_ns, segment.end_ns);
    segments.push_back(segment);
    totals.Add(segment.mask, segment.end_ns - segment.begin_ns);
    idle_ns += segment.mask == 0 ? segment.end_ns - segment.begin_ns : 0;
  }
  std::vector<Segment> segments;
  DeviceTotals totals;
  int64_t idle_ns = 0;
};

TEST(DeviceSweepTest, OverlappingKernelsCountOnce) {
  Recorder out;
  DeviceSweep sweep(8, 0, &out);
  sweep.Add(10, 30, Lane::kMatmul, 0);
  sweep.Add(20, 50, Lane::kMatmul, 1);
  sweep.Finish(60);
  EXPECT_EQ(out.totals.busy_ns, 40);
  EXPECT_EQ(out.totals.compute_ns, 40);
  EXPECT_EQ(out.idle_ns, 20);
}

TEST(DeviceSweepTest, CommunicationUnderComputeIsNotExposed) {
  Recorder out;
  DeviceSweep sweep(8, 0, &out);
  sweep.Add(0, 100, Lane::kComm, 0);
  sweep.Add(40, 70, Lane::kElementwise, 1);
  sweep.Finish(100);
  EXPECT_EQ(out.totals.comm_ns, 100);
  EXPECT_EQ(out.totals.comm_overlapped_ns, 30);
  EXPECT_EQ(out.totals.comm_exposed_ns, 70);
}

TEST(DeviceSweepTest, CopyIsExposedOnlyWhereNothingElseRuns) {
  Recorder out;
  DeviceSweep sweep(8, 0, &out);
  sweep.Add(0, 100, Lane::kH2dPageable, 0);
  sweep.Add(10, 20, Lane::kComm, 1);
  sweep.Add(50, 60, Lane::kMatmul, 2);
  sweep.Finish(100);
  EXPECT_EQ(out.totals.copy_ns, 100);
  EXPECT_EQ(out.totals.copy_exposed_ns, 80);
}

TEST(DeviceSweepTest, AnIdleSegmentNamesTheOperationThatEndedIt) {
  Recorder out;
  DeviceSweep sweep(8, 0, &out);
  sweep.Add(10, 20, Lane::kMatmul, 7);
  sweep.Add(30, 40, Lane::kMatmul, 8);
  sweep.Finish(50);
  ASSERT_EQ(out.segments.size(), 5U);
  EXPECT_EQ(out.segments[0].next, 7U);
  EXPECT_EQ(out.segments[2].mask, 0U);
  EXPECT_EQ(out.segments[2].next, 8U);
  EXPECT_EQ(out.segments[4].next, kNoTag);
}

TEST(DeviceSweepTest, OperationsWithoutLengthChangeNothing) {
  Recorder out;
  DeviceSweep sweep(8, 0, &out);
  sweep.Add(5, 5, Lane::kMatmul, 0);
  sweep.Add(8, 3, Lane::kMatmul, 1);
  sweep.Finish(10);
  EXPECT_EQ(out.totals.busy_ns, 0);
  EXPECT_EQ(out.idle_ns, 10);
}

TEST(DeviceSweepTest, LateIntervalsAreCutOffAndCounted) {
  Recorder out;
  DeviceSweep sweep(8, 0, &out);
  sweep.Add(100, 110, Lane::kMatmul, 0);
  sweep.AdvanceTo(200);
  sweep.Add(150, 250, Lane::kMatmul, 1);
  sweep.Add(10, 20, Lane::kMatmul, 2);
  sweep.Finish(300);
  EXPECT_EQ(sweep.late(), 2U);
  EXPECT_EQ(out.totals.busy_ns, 10 + 50);
}

TEST(DeviceSweepTest, AFullWindowIsSweptEarlyAndOrderedIntervalsAreKept) {
  Recorder out;
  DeviceSweep sweep(2, 0, &out);
  for (int i = 0; i < 100; ++i) sweep.Add(i * 10, i * 10 + 5, Lane::kMatmul, 0);
  sweep.Finish(1000);
  EXPECT_GT(sweep.forced(), 0U);
  EXPECT_EQ(out.totals.busy_ns, 500);
}

// Compares the sweep with counting nanosecond by nanosecond.
TEST(DeviceSweepTest, AgreesWithCountingEveryNanosecond) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    constexpr int kEnd = 500;
    std::vector<uint32_t> masks(kEnd, 0);
    Recorder out;
    DeviceSweep sweep(64, 0, &out);
    for (uint32_t i = 0; i < 60; ++i) {
      const auto begin = static_cast<int>(random() % (kEnd - 30));
      const auto end = begin + static_cast<int>(random() % 30);
      const auto lane = static_cast<Lane>(random() % kLaneCount);
      for (int t = begin; t < end; ++t) masks[static_cast<size_t>(t)] |= Bit(lane);
      sweep.Add(begin, end, lane, i);
    }
    sweep.Finish(kEnd);
    DeviceTotals counted;
    for (const uint32_t mask : masks) counted.Add(mask, 1);
    EXPECT_EQ(out.totals.busy_ns, counted.busy_ns);
    EXPECT_EQ(out.totals.compute_ns, counted.compute_ns);
    EXPECT_EQ(out.totals.comm_exposed_ns, counted.comm_exposed_ns);
    EXPECT_EQ(out.totals.copy_exposed_ns, counted.copy_exposed_ns);
    EXPECT_EQ(out.totals.lane_ns, counted.lane_ns);
    EXPECT_EQ(out.totals.busy_ns + out.idle_ns, kEnd);
  }
}

}  // namespace
}  // namespace fullbore::timeline
