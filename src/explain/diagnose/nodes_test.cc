// Runs on several machines: which of them is late, and what differs there.
#include "explain/diagnose/nodes.h"

#include <gmock/gmock.h>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/node_differences.h"
#include "explain/diagnose/testing/made_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MadeRank;
using testing::MadeRun;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kRanksOfNode = 4;

// `nodes` machines whose ranks take 100 ms a step; those of `late(rank, step)` arrive last, and the others wait 40 ms.
record::Recording RunOn(int nodes, const std::function<bool(int, int64_t)>& late) {
  std::vector<record::RankInfo> ranks;
  for (int rank = 0; rank < nodes * kRanksOfNode; ++rank) {
    ranks.push_back(MadeRank(rank, 60, [&](int64_t step) {
      return late(rank, step) ? testing::MadeStep{.forward_ms = 80, .comm_ms = 2}
                              : testing::MadeStep{.comm_ms = 42};
    }));
    ranks.back().node = rank / kRanksOfNode;
  }
  record::Recording run = MadeRun(std::move(ranks));
  for (int node = 0; node < nodes; ++node) {
    record::Node& made = run.stages[0].nodes.emplace_back();
    made.name = "gpu-" + std::to_string(node);
    made.machine = {{"cores_logical", "64"}, {"driver_version", "590.1"}};
    made.means = {{record::KeyOf(Metric::kGpuSmClock, {{"gpu", "0"}}), 1.75e9 + 1e6 * node},
                  {record::KeyOf(Metric::kGpuSmClock, {{"gpu", "1"}}), 1.76e9},
                  {record::KeyOf(Metric::kCpuUtilization), 0.30},
                  {record::KeyOf(Metric::kProcessCpu, {{"role", "trainer"}}), 18.0}};
  }
  return run;
}

const Finding* Straggler(const Diagnosis& diagnosis) {
  const auto found = std::ranges::find(diagnosis.findings, "straggler", &Finding::id);
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

// In every step another rank of it is the last, so that no rank alone is.
TEST(NodesTest, ASlowMachineIsNamedWithWhatDiffersThere) {
  record::Recording run =
      RunOn(4, [](int rank, int64_t step) { return rank / kRanksOfNode == 2 && rank % 4 != step % 4; });
  run.stages[0].nodes[2].means[1].value = 1.02e9;  // one GPU of it
  const Diagnosis diagnosis = Diagnose(run);
  const Finding* finding = Straggler(diagnosis);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, "slow-node");
  EXPECT_THAT(finding->title, HasSubstr("gpu-2 (ranks 8-11) arrives last in 100 % of the steps"));
  EXPECT_THAT(finding->title, HasSubstr("SM clock of its slowest GPU 1.02 GHz, elsewhere 1.75 GHz"));
  EXPECT_THAT(finding->fix.front(), HasSubstr("look at gpu-2: SM clock"));
  EXPECT_THAT(finding->fix.back(), HasSubstr("--exclude=gpu-2"));
  ASSERT_THAT(diagnosis.nodes, SizeIs(4));
  EXPECT_EQ(diagnosis.nodes[2].ranks, (std::vector<int>{8, 9, 10, 11}));
  EXPECT_THAT(diagnosis.nodes[2].differs, SizeIs(1));
  EXPECT_THAT(diagnosis.nodes[1].differs, IsEmpty());
}

// The others on its machine wait for it as everybody does.
TEST(NodesTest, ASlowRankIsNotItsMachine) {
  const Diagnosis diagnosis = Diagnose(RunOn(4, [](int rank, int64_t) { return rank == 9; }));
  const Finding* finding = Straggler(diagnosis);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, "");
  EXPECT_THAT(finding->title, HasSubstr("Rank 9 on gpu-2 arrives last"));
}

// Then its work may be what is late: nobody is told to leave it out.
TEST(NodesTest, WhereNothingDiffersThatIsSaid) {
  const Diagnosis diagnosis = Diagnose(RunOn(4, [](int rank, int64_t) { return rank / kRanksOfNode == 2; }));
  const Finding* finding = Straggler(diagnosis);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, "");
  EXPECT_THAT(finding->title, HasSubstr("gpu-2 (ranks 8-11) arrives last"));
  EXPECT_THAT(finding->fix.front(), HasSubstr("nothing that was recorded differs there"));
  for (const std::string& fix : finding->fix) EXPECT_THAT(fix, Not(HasSubstr("--exclude")));
}

// One rank a machine: it is the rank that is named, unless its machine differs.
TEST(NodesTest, TheOnlyRankOfAMachineIsNamedItself) {
  record::Recording run = RunOn(4, [](int rank, int64_t) { return rank == 8; });
  std::erase_if(run.stages[0].ranks,
                [](const record::RankInfo& rank) { return rank.rank % kRanksOfNode != 0; });
  EXPECT_THAT(Straggler(Diagnose(run))->title, HasSubstr("Rank 8 on gpu-2 arrives last"));
  run.stages[0].nodes[2].means[1].value = 1.02e9;
  EXPECT_THAT(Straggler(Diagnose(run))->title, HasSubstr("gpu-2 (rank 8) arrives last"));
}

TEST(NodesTest, MachinesInTurnAreNoSlowMachine) {
  const Diagnosis diagnosis =
      Diagnose(RunOn(4, [](int rank, int64_t step) { return rank / kRanksOfNode == step % 4; }));
  EXPECT_EQ(Straggler(diagnosis), nullptr);
}

TEST(NodesTest, OneMachineHasNoSummaries) {
  record::Recording run = RunOn(1, [](int, int64_t) { return false; });
  EXPECT_THAT(Diagnose(run).nodes, IsEmpty());
}

std::vector<record::Node> Machines(size_t count) {
  return RunOn(static_cast<int>(count), [](int, int64_t) { return false; }).stages[0].nodes;
}

TEST(NodeDifferencesTest, OtherProgramsAndFactsOfOneMachine) {
  auto nodes = Machines(5);
  nodes[1].means[2].value = 0.60;  // 38 cores, of which its own ranks use 18
  nodes[3].machine["driver_version"] = "580.4";
  const NodeDifferences differences(nodes);
  ASSERT_THAT(differences.Of(1), SizeIs(2));
  EXPECT_EQ(differences.Of(1)[0].what, "cores that other programs keep busy");
  EXPECT_EQ(differences.Of(1)[1].what, "use of its cores");
  ASSERT_THAT(differences.Of(3), SizeIs(1));
  EXPECT_EQ(differences.Of(3)[0].here, "580.4");
  EXPECT_EQ(differences.Of(3)[0].elsewhere, "590.1");
  EXPECT_THAT(differences.Of(0), IsEmpty());
}

// With two, either may be the odd one; and where values scatter, none is.
TEST(NodeDifferencesTest, NoOddOneAmongTwoOrAmongThoseThatScatter) {
  auto two = Machines(2);
  two[1].means[0].value = 0.9e9;
  EXPECT_THAT(NodeDifferences(two).Of(1), IsEmpty());
  auto scattered = Machines(6);
  for (size_t i = 0; i < 6; ++i)
    scattered[i].means[0].value = scattered[i].means[1].value = 1e9 + 0.15e9 * static_cast<double>(i);
  EXPECT_THAT(NodeDifferences(scattered).Of(0), IsEmpty());
}

// A machine that is better than the others is not the slow one.
TEST(NodeDifferencesTest, WhatIsBetterDoesNotCount) {
  auto nodes = Machines(4);
  nodes[2].means[0].value = nodes[2].means[1].value = 2.2e9;
  nodes[2].means[2].value = 0.05;
  EXPECT_THAT(NodeDifferences(nodes).Of(2), IsEmpty());
}

TEST(NodesTest, RangesJoinNeighbours) {
  EXPECT_EQ(RangesOf({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(RangesOf({3}), "3");
}

}  // namespace
}  // namespace fullbore::diagnose
