#include "fleet/nodes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace fullbore::fleet {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// So many runs of a command on each machine, in an order by chance and with noise; machine 2 at `pace`, and all at
// `later` from the middle on.
struct Cluster {
  int nodes = 8, runs = 20;
  double pace = 1, later = 1;
  unsigned seed = 1;
};
std::vector<RunAccount> RunsOf(const Cluster& cluster) {
  std::mt19937 random(cluster.seed);
  std::normal_distribution<double> noise(1, 0.03);
  std::vector<RunAccount> all;
  for (int i = 0; i < cluster.nodes * cluster.runs; ++i) {
    const int node = i % cluster.nodes;
    RunAccount& run = all.emplace_back();
    run.node = "node-" + std::to_string(node);
    run.command = "python train.py";
    run.device = "cpu";
    run.devices = 1;
    run.steps_per_s = 300 * noise(random) * (node == 2 ? cluster.pace : 1);
  }
  std::ranges::shuffle(all, random);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].begin_unix_ns = static_cast<int64_t>(i);
    if (i > all.size() / 2) all[i].steps_per_s *= cluster.later;
  }
  return all;
}

RunAccount ARunOn(const std::string& node, int64_t begin_unix_ns, double steps_per_s) {
  RunAccount run;
  run.node = node;
  run.command = "python train.py";
  run.begin_unix_ns = begin_unix_ns;
  run.steps_per_s = steps_per_s;
  return run;
}

TEST(NodeHistoryTest, AMachineThatIsSlowInTheSameWorkIsNamed) {
  const auto histories = HistoriesOf(RunsOf({.pace = 0.9}));
  ASSERT_THAT(histories, SizeIs(8));
  EXPECT_EQ(histories[0].node, "node-2");
  EXPECT_TRUE(histories[0].slow);
  EXPECT_GE(histories[0].comparisons, 12u);
  EXPECT_EQ(histories[0].works, 1u);
  EXPECT_NEAR(histories[0].median, 0.9, 0.03);
  for (size_t i = 1; i < 8; ++i) EXPECT_FALSE(histories[i].slow) << histories[i].node;
}

TEST(NodeHistoryTest, AmongEqualMachinesNoneIsNamed) {
  size_t named = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    for (const NodeHistory& history : HistoriesOf(RunsOf({.seed = seed}))) named += history.slow;
  }
  EXPECT_EQ(named, 0u);
}

// Somebody makes the program slower, and runs it from then on nearly always on one machine.
TEST(NodeHistoryTest, AChangeOfTheCodeIsNoSlowMachine) {
  std::vector<RunAccount> runs;
  int64_t time = 0;
  for (int i = 0; i < 30; ++i)
    runs.push_back(ARunOn("node-" + std::to_string(1 + i % 3), ++time, 300 + i % 2));
  for (int i = 0; i < 30; ++i) runs.push_back(ARunOn("node-0", ++time, 150 + i % 2));
  for (int i = 0; i < 6; ++i)
    runs.push_back(ARunOn("node-" + std::to_string(1 + i % 3), ++time, 150 + i % 2));
  for (const NodeHistory& history : HistoriesOf(runs)) EXPECT_FALSE(history.slow) << history.node;
  for (const NodeHistory& history : HistoriesOf(RunsOf({.later = 0.5})))
    EXPECT_FALSE(history.slow) << history.node;
}

// One run elsewhere on either side, and neither counts again.
TEST(NodeHistoryTest, RunsBetweenTwoOfOtherMachinesAreOneComparison) {
  std::vector<RunAccount> runs;
  int64_t time = 0;
  for (int i = 0; i < 6; ++i) {
    runs.push_back(ARunOn("a", ++time, 100));
    for (int own = 0; own < 3; ++own) runs.push_back(ARunOn("c", ++time, 50));
    runs.push_back(ARunOn("b", ++time, 100));
  }
  const auto histories = HistoriesOf(runs);
  ASSERT_FALSE(histories.empty());
  EXPECT_EQ(histories[0].node, "c");
  EXPECT_EQ(histories[0].comparisons, 6u);
  EXPECT_EQ(histories[0].below, 6u);
  EXPECT_EQ(histories[0].above, 0u);
}

TEST(NodeHistoryTest, FewRunsAndWorkThatNobodyElseDoesSayNothing) {
  EXPECT_THAT(HistoriesOf(RunsOf({.runs = 3, .pace = 0.5})), IsEmpty());
  EXPECT_THAT(HistoriesOf(RunsOf({.nodes = 1})), IsEmpty());
  EXPECT_THAT(HistoriesOf(RunsOf({.nodes = 2})), IsEmpty());  // either may be the odd one
  std::vector<RunAccount> mixed = RunsOf({.nodes = 3});
  for (RunAccount& run : mixed) {
    if (run.node == "node-1") run.devices = 8;
    if (run.node == "node-2") run.user = "ben";
  }
  EXPECT_THAT(HistoriesOf(mixed), IsEmpty());
}

// As a database may hold it.
TEST(NodeHistoryTest, ARateThatIsNoNumberIsLeftOut) {
  std::vector<RunAccount> runs = RunsOf({});
  for (const double rate :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    runs.push_back(ARunOn("node-2", 5, rate));
  for (const NodeHistory& history : HistoriesOf(runs)) EXPECT_TRUE(std::isfinite(history.median));
}

TEST(NodeHistoryTest, ChanceIsThatOfTheBinomialDistribution) {
  EXPECT_NEAR(ByChance(10, 10), 1.0 / 1024, 1e-9);
  EXPECT_NEAR(ByChance(4, 3), 5.0 / 16, 1e-9);
  EXPECT_NEAR(ByChance(7, 0), 1, 1e-9);
}

}  // namespace
}  // namespace fullbore::fleet
