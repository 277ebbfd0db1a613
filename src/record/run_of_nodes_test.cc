#include "record/run_of_nodes.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/testing/scratch_directory.h"
#include "record/metrics.h"
#include "record/run_writer.h"

namespace fullbore::record {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kStepNs = 100 * kNsPerMs;

// A machine whose clock began at another moment, and whose wall clock is off by `wall_ahead_ns`.
struct Written {
  std::string name;
  int first_rank = 0, ranks = 2;
  int64_t boot_ns = 0, wall_ahead_ns = 0;
  int64_t steps = 200;
  double cpu = 0.5;
  bool ends = true;
  std::string stage = "train";
};

class RunOfNodesTest : public ::testing::Test {
 protected:
  RunOfNodesTest() { fs::create_directory(folder_); }

  void Write(const Written& node) {
    const std::string path = folder_ + "/" + node.name + ".fbr";
    const int64_t begin_ns = 1'000 * kNsPerSecond - node.boot_ns;
    auto writer = RunWriter::Open(path, {"run-1", node.stage, {"torchrun", "train.py"}, "/", {}}, begin_ns,
                                  1'000'000 * kNsPerSecond + node.wall_ahead_ns);
    ASSERT_TRUE(writer.ok()) << ToString(writer.error());
    writer->PutMachineFact("hostname", node.name);
    for (int rank = node.first_rank; rank < node.first_rank + node.ranks; ++rank) {
      RankInfo info;
      info.rank = rank;
      writer->PutRank(info);
      for (int64_t i = 0; i < node.steps; ++i) {
        Step step;
        step.index = i;
        step.end_ns = begin_ns + (i + 1) * kStepNs;
        step.wall_ns = step.share_ns[Index(Share::kForward)] = kStepNs;
        writer->AppendStep(rank, step);
      }
      for (int64_t i = 0; i < node.steps; i += 10) {
        StepWindow window;
        window.first_step = i;
        window.steps = 10;
        window.begin_ns = begin_ns + i * kStepNs;
        window.end_ns = window.begin_ns + 10 * kStepNs;
        window.share_ns[Index(Share::kForward)] = 10 * kStepNs;
        writer->AppendWindow(rank, window);
      }
    }
    for (int64_t s = 1; s <= node.steps / 10; ++s)
      writer->AppendReading(1, KeyOf(Metric::kCpuUtilization), begin_ns + s * kNsPerSecond,
                            s == 1 ? 1 : node.cpu);
    writer->AppendMessage({begin_ns, Severity::kWarning, "nvml", "no device"});
    const int64_t end_ns = begin_ns + node.steps * kStepNs;
    if (node.ends)
      ASSERT_TRUE(writer->Close(end_ns, StageState::kEnded, 0, false).ok());
    else
      ASSERT_TRUE(writer->Flush(end_ns).ok());
  }

  Recording Read() {
    auto run = ReadRun(folder_);
    EXPECT_TRUE(run.ok()) << ToString(run.error());
    return run.ok() ? std::move(*run) : Recording{};
  }

  ScratchDirectory scratch_;
  std::string folder_ = scratch_.path() + "/run-1.fbr";
};

TEST_F(RunOfNodesTest, ARunOfTwoMachinesIsThatOfTheFirstRankWithTheRanksOfBoth) {
  Write({.name = "b", .first_rank = 0, .cpu = 0.25});
  Write({.name = "a", .first_rank = 2, .cpu = 0.75});
  const Recording run = Read();
  EXPECT_EQ(run.id, "run-1");
  EXPECT_EQ(run.path, folder_);
  EXPECT_EQ(run.machine.at("hostname"), "b");
  ASSERT_EQ(run.stages.size(), 1u);
  const Stage& stage = run.stages[0];
  ASSERT_EQ(stage.ranks.size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(stage.ranks[static_cast<size_t>(rank)].rank, rank);
    EXPECT_EQ(stage.ranks[static_cast<size_t>(rank)].node, rank / 2);
    EXPECT_EQ(stage.ranks[static_cast<size_t>(rank)].steps.size(), 200u);
  }
  ASSERT_EQ(stage.nodes.size(), 2u);
  EXPECT_EQ(stage.nodes[0].name, "b");
  EXPECT_EQ(stage.nodes[1].name, "a");
  ASSERT_EQ(stage.nodes[1].means.size(), 1u);
  EXPECT_DOUBLE_EQ(stage.nodes[1].means[0].value, 0.75);  // without the first reading
  ASSERT_EQ(stage.series.size(), 1u);
  EXPECT_DOUBLE_EQ(stage.series[0].readings.back().value, 0.25);
  EXPECT_THAT(stage.messages.back().text, HasSubstr("a: no device"));
}

// Clocks of another boot, and walls that are a quarter of a second apart: steps end everywhere at once.
TEST_F(RunOfNodesTest, TimesAreOnTheFirstMachinesClock) {
  Write({.name = "a", .first_rank = 0});
  Write({.name = "b", .first_rank = 2, .boot_ns = 700 * kNsPerSecond, .wall_ahead_ns = 250 * kNsPerMs});
  const Recording run = Read();
  const std::vector<RankInfo>& ranks = run.stages[0].ranks;
  EXPECT_EQ(ranks[2].steps[50].end_ns, ranks[0].steps[50].end_ns);
  EXPECT_EQ(ranks[2].windows[5].begin_ns, ranks[0].windows[5].begin_ns);
  EXPECT_EQ(run.stages[0].nodes[1].end_ns, run.stages[0].nodes[0].end_ns);
}

TEST_F(RunOfNodesTest, AMachineThatIsLostIsNamedAndTheOthersAreRead) {
  Write({.name = "a", .first_rank = 0});
  Write({.name = "b", .first_rank = 2, .steps = 80, .ends = false});
  Write({.name = "c", .first_rank = 4, .steps = 195, .ends = false});  // still writes, or did until just now
  const Recording run = Read();
  ASSERT_EQ(run.stages[0].nodes.size(), 3u);
  EXPECT_FALSE(run.stages[0].nodes[0].cut_off);
  EXPECT_TRUE(run.stages[0].nodes[1].cut_off);
  EXPECT_FALSE(run.stages[0].nodes[2].cut_off);
  EXPECT_THAT(run.stages[0].messages.back().text, HasSubstr("b: nothing is recorded of it since 12 s"));
  EXPECT_EQ(run.stages[0].ranks.size(), 6u);
}

TEST_F(RunOfNodesTest, WhatCannotBeReadIsLeftOutAndSaid) {
  Write({.name = "a", .first_rank = 0});
  std::ofstream(folder_ + "/b.fbr") << "no run at all";
  fs::create_directory(folder_ + "/c.fbr");
  const Recording run = Read();
  EXPECT_EQ(run.stages[0].ranks.size(), 2u);
  EXPECT_THAT(run.stages[0].messages.back().text, HasSubstr("b.fbr"));
  fs::remove(folder_ + "/a.fbr");
  EXPECT_FALSE(ReadRun(folder_).ok());
  fs::remove(folder_ + "/b.fbr");
  EXPECT_EQ(ReadRun(folder_).error().code, ErrorCode::kNotFound);
}

TEST_F(RunOfNodesTest, ARankThatTwoMachinesClaimCountsOnce) {
  Write({.name = "a", .first_rank = 0});
  Write({.name = "b", .first_rank = 1});
  const Recording run = Read();
  EXPECT_EQ(run.stages[0].ranks.size(), 3u);
  EXPECT_THAT(run.stages[0].messages.back().text, HasSubstr("1 ranks are in the files of two machines"));
}

TEST_F(RunOfNodesTest, StagesAreTheSameByName) {
  Write({.name = "a", .first_rank = 0});
  Write({.name = "b", .first_rank = 2, .stage = "evaluate"});
  const Recording run = Read();
  ASSERT_EQ(run.stages.size(), 1u);
  EXPECT_EQ(run.stages[0].ranks.size(), 2u);
  EXPECT_THAT(run.stages[0].messages.back().text, HasSubstr("b: its stage 'evaluate' is left out"));
}

TEST_F(RunOfNodesTest, TasksOfOneMachineThatWereRecordedApartAreOneMachine) {
  Write({.name = "gpu-1-task0", .first_rank = 0});
  Write({.name = "gpu-1-task1", .first_rank = 2});
  Write({.name = "gpu-taskforce", .first_rank = 4});
  const Recording run = Read();
  ASSERT_EQ(run.stages[0].nodes.size(), 2u);
  EXPECT_EQ(run.stages[0].nodes[0].name, "gpu-1");
  EXPECT_EQ(run.stages[0].nodes[1].name, "gpu-taskforce");
  EXPECT_EQ(run.stages[0].ranks[3].node, 0);
  EXPECT_EQ(run.stages[0].ranks[5].node, 1);
}

// The first one is gone, and the others go on.
TEST_F(RunOfNodesTest, ARunGoesOnUntilItsLastMachineEnds) {
  Write({.name = "a", .first_rank = 0, .steps = 50});
  Write({.name = "b", .first_rank = 2, .steps = 200, .ends = false});
  const Recording run = Read();
  EXPECT_EQ(run.stages[0].state, StageState::kRunning);
  EXPECT_EQ(run.stages[0].end_ns - run.stages[0].begin_ns, 200 * kStepNs);
  const auto summary = ReadRunSummary(folder_);
  EXPECT_EQ(summary->stages[0].state, StageState::kRunning);
  EXPECT_EQ(summary->stages[0].end_ns - summary->stages[0].begin_ns, 200 * kStepNs);
}

// A step takes 300 bytes: of many ranks fewer are kept, the same ones of each, and every window's time.
TEST_F(RunOfNodesTest, OfManyRanksTheSameStepsAreKeptOfEach) {
  constexpr int kRanks = 200;
  Write({.name = "a", .first_rank = 0});
  Write({.name = "b", .first_rank = 2, .ranks = kRanks, .steps = 2000});
  const Recording run = Read();
  const std::vector<RankInfo>& ranks = run.stages[0].ranks;
  const std::vector<Step>& some = ranks[2].steps;
  EXPECT_LE(some.size(), 200'000u / (2 * kRanks));
  EXPECT_GE(some.size(), 32u);
  for (const RankInfo& rank : ranks) {
    if (rank.node == 0) continue;
    ASSERT_EQ(rank.steps.size(), some.size());
    for (size_t i = 0; i < some.size(); ++i) EXPECT_EQ(rank.steps[i].index, some[i].index);
    EXPECT_LE(rank.windows.size(), 64u);
    int64_t steps = 0;
    for (const StepWindow& window : rank.windows) steps += window.steps;
    EXPECT_EQ(steps, 2000);
  }
}

// A file may say anything: walls of different centuries, and every step with the number 0.
TEST_F(RunOfNodesTest, NonsenseIsReadWithinBounds) {
  Write({.name = "a", .first_rank = 0, .wall_ahead_ns = -6'000'000'000'000'000'000});
  Write({.name = "b", .first_rank = 2, .wall_ahead_ns = 6'000'000'000'000'000'000});
  {
    auto writer = RunWriter::Open(folder_ + "/c.fbr", {"run-1", "train", {}, "/", {}}, 1000, 1000);
    ASSERT_TRUE(writer.ok());
    Step step;
    step.wall_ns = step.share_ns[0] = 1;
    for (int64_t i = 0; i < 100'000; ++i) {
      step.end_ns = 1000 + i;
      writer->AppendStep(9, step);
    }
    ASSERT_TRUE(writer->Close(200'000, StageState::kEnded, 0, false).ok());
  }
  const Recording run = Read();
  EXPECT_EQ(run.stages[0].nodes.size(), 3u);
  for (const RankInfo& rank : run.stages[0].ranks) {
    for (const Step& step : rank.steps) EXPECT_LE(std::abs(step.end_ns), int64_t{1} << 60);
  }
}

TEST_F(RunOfNodesTest, ASummaryCountsTheStepsAndBytesOfAll) {
  Write({.name = "a", .first_rank = 0});
  Write({.name = "b", .first_rank = 2});
  const auto summary = ReadRunSummary(folder_);
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->path, folder_);
  EXPECT_EQ(summary->steps, 800);
  EXPECT_EQ(summary->bytes,
            static_cast<int64_t>(fs::file_size(folder_ + "/a.fbr") + fs::file_size(folder_ + "/b.fbr")));
}

}  // namespace
}  // namespace fullbore::record
