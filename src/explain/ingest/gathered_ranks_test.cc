// What is kept of the traces of many ranks, and that it is what would be kept of each alone.
#include "explain/ingest/gathered_ranks.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/testing/scratch_directory.h"
#include "explain/ingest/ingest.h"
#include "explain/ingest/testing/trace_builder.h"
#include "timeline/device/kept_ranks.h"

namespace fullbore::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TraceBuilder;

constexpr int kMany = 40, kLate = 33;

// Three steps of a product and a collective, which ends everywhere at the same time.
std::string RankTrace(int rank, double late_us, double begin_us = 1e9) {
  TraceBuilder trace;
  trace.Property("\"distributedInfo\": {\"rank\": " + std::to_string(rank) + "}");
  trace.Raw(R"({"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": )" + std::to_string(begin_us) +
            R"(, "args": {"Total Allocated": 4096, "Device Type": 1, "Device Id": 0}})");
  for (int i = 0; i < 3; ++i) {
    const double t = begin_us + i * 1000;
    trace.Step(i, t, 990).Launched("volta_sgemm", t + 10, t + 20, 300 + late_us);
    trace.Launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL", t + 30, t + 320 + late_us, 500 - late_us);
  }
  return trace.Json();
}

std::string NameOf(int rank) { return std::to_string(100 + rank) + ".json"; }
std::string TraceOf(int rank) { return RankTrace(rank, rank == kLate ? 200 : rank % 3); }

class ManyRanksTest : public ::testing::Test {
 protected:
  void Write(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) dir_.Write(NameOf(rank), TraceOf(rank));
  }

  record::Stage Read(const TraceOptions& options = {}) {
    auto recording = ReadTraces({dir_.path()}, options);
    EXPECT_TRUE(recording.ok()) << ToString(recording.error());
    return std::move(recording->stages[0]);
  }

  static std::vector<int> InFull(const record::Stage& stage) {
    std::vector<int> ranks;
    for (const record::RankInfo& rank : stage.ranks) {
      EXPECT_EQ(rank.graph.has_value(), rank.timeline.has_value()) << rank.rank;
      if (rank.graph) ranks.push_back(rank.rank);
    }
    return ranks;
  }

  static std::string Texts(const record::Stage& stage) {
    std::string all;
    for (const record::Message& message : stage.messages) all += message.text + "\n";
    return all;
  }

  const ScratchDirectory dir_;
};

TEST_F(ManyRanksTest, OfAFewAllAreKeptInFull) {
  Write(timeline::kMostKeptRanks);
  const record::Stage stage = Read();
  EXPECT_EQ(InFull(stage).size(), timeline::kMostKeptRanks);
  EXPECT_EQ(stage.series.size(), timeline::kMostKeptRanks);
  EXPECT_THAT(Texts(stage), Not(HasSubstr("kept in full")));
}

TEST_F(ManyRanksTest, OfMoreTheFirstOnesAreAndThoseThatAreWaitedForWhichIsSaid) {
  Write(kMany);
  const record::Stage stage = Read();
  EXPECT_EQ(stage.ranks.size(), static_cast<size_t>(kMany));
  EXPECT_THAT(InFull(stage), ElementsAre(0, 1, 2, 5, 8, 11, 14, 17, kLate));
  EXPECT_EQ(stage.series.size(), 9U) << "the counters are those of the same ranks";
  EXPECT_THAT(Texts(stage), HasSubstr("of the 40 ranks, 9 are kept in full (0, 1, 2, 5, 8, 11, 14, 17, 33)"));
}

TEST_F(ManyRanksTest, OfTheOthersThereAreAllSums) {
  Write(kMany);
  for (const record::RankInfo& rank : Read().ranks) {
    EXPECT_EQ(rank.steps.size(), 3U);
    EXPECT_EQ(rank.kernels, 6);
    EXPECT_EQ(rank.comm_wait_ns, rank.rank == kLate ? 0 : 3 * (200 - rank.rank % 3) * 1000);
  }
}

TEST_F(ManyRanksTest, WhatIsReadASecondTimeIsAsIfItHadBeenKept) {
  Write(kMany);
  const record::Stage many = Read();
  for (int rank = 2; rank < kMany; ++rank) {
    if (rank != kLate) std::filesystem::remove(dir_.path() + "/" + NameOf(rank));
  }
  const record::RankInfo of_many = many.ranks[kLate], alone = Read().ranks.back();
  ASSERT_EQ(of_many.rank, alone.rank);
  EXPECT_EQ(of_many.graph->begin_ns, alone.graph->begin_ns);
  EXPECT_EQ(of_many.graph->step_ends, alone.graph->step_ends);
  EXPECT_EQ(of_many.graph->names, alone.graph->names);
  for (size_t i = 0; i < alone.graph->nodes.size(); ++i) {
    EXPECT_EQ(of_many.graph->nodes[i].duration_ns, alone.graph->nodes[i].duration_ns);
    EXPECT_EQ(of_many.graph->nodes[i].wait_ns, alone.graph->nodes[i].wait_ns);
    EXPECT_EQ(of_many.graph->nodes[i].meeting > 0, alone.graph->nodes[i].meeting > 0);
  }
  EXPECT_EQ(of_many.timeline->begin_ns, alone.timeline->begin_ns);
  EXPECT_EQ(of_many.timeline->names, alone.timeline->names);
}

TEST_F(ManyRanksTest, OfTwoRecordingsOfAProcessTheEarlierOneIsShownWhicheverIsReadFirst) {
  Write(kMany);
  std::filesystem::remove(dir_.path() + "/" + NameOf(1));
  dir_.Write("998.json", RankTrace(1, 0, 2e9));
  dir_.Write("999.json", RankTrace(1, 0));
  const record::Stage stage = Read();
  EXPECT_THAT(InFull(stage), ElementsAre(0, 1)) << "nobody else comes to as many collectives";
  const record::RankInfo& twice = stage.ranks[1];
  ASSERT_EQ(twice.steps.size(), 6U);
  EXPECT_LE(twice.timeline->end_ns, twice.steps[2].end_ns);
  EXPECT_EQ(stage.series.size(), 3U) << "counters are of both recordings";
}

TEST_F(ManyRanksTest, EachTraceIsLookedAtOnceAndCutWheneverItIsRead) {
  Write(kMany);
  int looked = 0, cut = 0;
  TraceOptions options;
  options.look = [&](const timeline::DeviceTrace&) { ++looked; };
  options.cut = [&](timeline::DeviceTrace&) { ++cut; };
  Read(options);
  EXPECT_EQ(looked, kMany);
  EXPECT_EQ(cut, kMany + 2) << "the late rank, and the one of those before it that had no place";
}

TEST_F(ManyRanksTest, AFileThatIsGoneTheSecondTimeIsSaid) {
  Write(kMany);
  int read = 0;
  TraceOptions options;
  options.look = [&](const timeline::DeviceTrace&) {
    if (++read == kMany) std::filesystem::remove(dir_.path() + "/" + NameOf(kLate));
  };
  const record::Stage stage = Read(options);
  EXPECT_EQ(stage.ranks.size(), static_cast<size_t>(kMany));
  EXPECT_THAT(InFull(stage), Not(::testing::Contains(kLate)));
  EXPECT_THAT(Texts(stage), HasSubstr(NameOf(kLate) + "' could not be read a second time"));
}

TEST_F(ManyRanksTest, AMemberOfAnArchiveIsFoundAgain) {
  std::vector<std::pair<std::string, std::string>> members;
  for (int rank = 0; rank < kMany; ++rank) members.emplace_back(NameOf(rank), TraceOf(rank));
  dir_.Write("all.zip", testing::Zip(members));
  const record::Stage stage = Read();
  EXPECT_THAT(InFull(stage), ElementsAre(0, 1, 2, 5, 8, 11, 14, 17, kLate));
  EXPECT_THAT(Texts(stage), Not(HasSubstr("second time")));
}

}  // namespace
}  // namespace fullbore::ingest
