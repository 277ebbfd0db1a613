#include "timeline/device/timeline.h"

#include <gmock/gmock.h>

#include "timeline/device/rank.h"

namespace fullbore::timeline {
namespace {

using record::Share;
using record::StepTimeline;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Field;

// Times in microseconds.
class TimelineTest : public ::testing::Test {
 protected:
  TimelineTest() {
    trace_.threads = {"4711", "4712"};
    trace_.streams = {"0/7", "0/20"};
  }

  void Kernel(const char* name, int64_t launch, int64_t begin, int64_t end, uint16_t stream = 0) {
    trace_.calls.push_back({launch * 1000, (launch + 5) * 1000, ++correlation_,
                            trace_.names.Find("cudaLaunchKernel"), 0, CallKind::kLaunch, 0});
    DeviceOp op;
    op.begin_ns = begin * 1000;
    op.end_ns = end * 1000;
    op.name = trace_.names.Find(name);
    op.correlation = correlation_;
    op.stream = stream;
    op.kernel = true;
    op.lane = ClassifyKernel(name);
    trace_.ops.push_back(op);
  }
  void Sync(int64_t begin, int64_t end) {
    trace_.calls.push_back(
        {begin * 1000, end * 1000, 0, trace_.names.Find("cudaStreamSynchronize"), 0, CallKind::kSync, 0});
  }
  void Operator(const char* name, int64_t begin, int64_t end, uint16_t thread = 0) {
    trace_.spans.push_back({begin * 1000, end * 1000, trace_.names.Find(name), thread, SpanKind::kOp});
  }

  StepTimeline Draw(int64_t begin, int64_t end, size_t max_pieces = kMaxTimelinePieces) {
    trace_.Finish();
    return TimelineOf(trace_, HostActivity(trace_), {begin * 1000, end * 1000}, max_pieces);
  }

  static std::vector<std::string> Tracks(const StepTimeline& line) {
    std::vector<std::string> names;
    for (const auto& track : line.tracks) names.push_back(track.name);
    return names;
  }
  // "gemm 10 60", with "> " for each level that it lies below the top.
  static std::vector<std::string> Pieces(const StepTimeline& line, const std::string& track) {
    std::vector<std::string> pieces;
    for (const auto& each : line.tracks) {
      if (each.name != track) continue;
      for (const auto& piece : each.pieces) {
        std::string text;
        for (int i = 0; i < piece.depth; ++i) text += "> ";
        pieces.push_back(text + line.names[piece.name] + " " + std::to_string(piece.begin_ns / 1000) + " " +
                         std::to_string(piece.end_ns / 1000));
      }
    }
    return pieces;
  }

  DeviceTrace trace_;
  uint32_t correlation_ = 0;
};

TEST_F(TimelineTest, EachStreamAndThreadIsATrackAndTheMainThreadIsNamed) {
  Kernel("gemm", 0, 10, 60);
  Kernel("ncclDevKernel_AllReduce", 6, 60, 90, 1);
  Operator("aten::linear", 0, 20);
  Operator("LinearBackward0", 30, 40, 1);
  EXPECT_THAT(Tracks(Draw(0, 100)),
              ElementsAre("stream 0/7", "stream 0/20", "thread 4711 (main)", "thread 4712"));
}

TEST_F(TimelineTest, WhatCrossesTheEdgeOfTheStepIsCutThereAndWhatLiesOutsideIsNotDrawn) {
  Kernel("before", 0, 10, 20);
  Kernel("across", 1, 20, 60);
  Kernel("after", 2, 60, 90);
  EXPECT_THAT(Pieces(Draw(30, 60), "stream 0/7"), ElementsAre("across 30 60"));
}

TEST_F(TimelineTest, ACallLiesBelowTheOperatorThatMadeIt) {
  Operator("aten::linear", 0, 20);
  Operator("aten::addmm", 2, 18);
  Kernel("gemm", 5, 10, 60);
  EXPECT_THAT(Pieces(Draw(0, 100), "thread 4711 (main)"),
              ElementsAre("aten::linear 0 20", "> aten::addmm 2 18", "> > cudaLaunchKernel 5 10"));
}

TEST_F(TimelineTest, OperationsOfAStreamThatOverlapLieBelowEachOther) {
  Kernel("first", 0, 10, 60);
  Kernel("second", 5, 40, 80);
  Kernel("third", 6, 80, 90);
  EXPECT_THAT(Pieces(Draw(0, 100), "stream 0/7"),
              ElementsAre("first 10 60", "third 80 90", "> second 40 80"));
}

TEST_F(TimelineTest, WorkHasTheShareThatItCountsAs) {
  Kernel("gemm", 0, 10, 60);
  Kernel("ncclDevKernel_AllReduce", 6, 60, 90, 1);
  Operator("aten::item", 12, 61);
  Sync(14, 60);
  const StepTimeline line = Draw(0, 100);
  const auto share = [](auto is) { return Field(&StepTimeline::Piece::share, is); };
  EXPECT_THAT(line.tracks[0].pieces, ElementsAre(share(Eq(Share::kCompute))));
  EXPECT_THAT(line.tracks[1].pieces, ElementsAre(share(Eq(Share::kCommExposed))));
  EXPECT_THAT(line.tracks[2].pieces, ElementsAre(share(Eq(Share::kLaunch)), share(Eq(Share::kLaunch)),
                                                 share(Eq(std::nullopt)), share(Eq(Share::kSync))));
}

TEST_F(TimelineTest, BeyondTheLimitShortNeighboursAreDrawnAsOneAndLongOnesStay) {
  for (int64_t i = 0; i < 500; ++i) Kernel("tiny", 20 * i, 20 * i + 6, 20 * i + 8);
  Kernel("long", 10'000, 10'010, 90'000);
  const StepTimeline line = Draw(0, 100'000, 100);
  size_t pieces = 0;
  int64_t drawn = 0;
  for (const auto& track : line.tracks) pieces += track.pieces.size();
  for (const auto& piece : line.tracks[0].pieces) drawn += piece.count;
  EXPECT_LE(pieces, 100U);
  EXPECT_EQ(drawn, 501);
  EXPECT_EQ(Pieces(line, "stream 0/7").back(), "long 10010 90000");
}

TEST_F(TimelineTest, ARankKeepsTheStepOfTheMedianTimeAndItsSharesCoverIt) {
  int64_t begin = 0;
  for (const int64_t wall : {100, 300, 200}) {
    trace_.steps.push_back({begin * 1000, (begin + wall) * 1000, begin, 0});
    Kernel("gemm", begin, begin + 20, begin + wall);
    begin += wall;
  }
  trace_.Finish();
  const auto line = SummariseRank(trace_).info.timeline;
  ASSERT_TRUE(line);
  EXPECT_EQ(line->step, 2);
  ASSERT_EQ(line->shares.size(), 2U);
  EXPECT_EQ(line->shares[0].share, Share::kLaunch);
  EXPECT_EQ(line->shares[1].share, Share::kCompute);
  EXPECT_EQ(line->shares[0].begin_ns, line->begin_ns);
  EXPECT_EQ(line->shares[0].end_ns, line->shares[1].begin_ns);
  EXPECT_EQ(line->shares[1].end_ns, line->end_ns);
  EXPECT_EQ(SummariseRank(trace_, 0).info.timeline->step, 0) << "the step of the first rank";
}

}  // namespace
}  // namespace fullbore::timeline
