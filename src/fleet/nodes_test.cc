#include "fleet/nodes.h"

#include <gmock/gmock.h>

#include <random>

namespace fullbore::fleet {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// `runs` runs of each of two commands on each of `nodes` machines, with noise; machine 2 at `pace`.
std::vector<RunAccount> Runs(int nodes, int runs, double pace, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(1, 0.03);
  std::vector<RunAccount> all;
  for (int node = 0; node < nodes; ++node) {
    for (int i = 0; i < 2 * runs; ++i) {
      RunAccount& run = all.emplace_back();
      run.node = "node-" + std::to_string(node);
      run.command = i % 2 ? "python train.py" : "python other.py";
      run.device = "cpu";
      run.devices = 1;
      run.steps_per_s = (i % 2 ? 10 : 300) * noise(random) * (node == 2 ? pace : 1);
    }
  }
  return all;
}

TEST(NodeHistoryTest, AMachineThatIsSlowInTheSameWorkIsNamed) {
  const auto histories = HistoriesOf(Runs(8, 10, 0.9));
  ASSERT_THAT(histories, SizeIs(8));
  EXPECT_EQ(histories[0].node, "node-2");
  EXPECT_TRUE(histories[0].slow);
  EXPECT_EQ(histories[0].runs, 20u);
  EXPECT_EQ(histories[0].works, 2u);
  EXPECT_NEAR(histories[0].median, 0.9, 0.03);
  for (size_t i = 1; i < 8; ++i) EXPECT_FALSE(histories[i].slow) << histories[i].node;
}

TEST(NodeHistoryTest, AmongEqualMachinesNoneIsNamed) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    for (const NodeHistory& history : HistoriesOf(Runs(8, 5, 1, seed))) EXPECT_FALSE(history.slow) << seed;
  }
}

// Four runs say nothing, and different work is not comparable.
TEST(NodeHistoryTest, FewRunsAndWorkThatNobodyElseDoesSayNothing) {
  EXPECT_THAT(HistoriesOf(Runs(8, 2, 0.5)), IsEmpty());
  std::vector<RunAccount> alone = Runs(1, 10, 1);
  EXPECT_THAT(HistoriesOf(alone), IsEmpty());
  std::vector<RunAccount> mixed = Runs(3, 10, 1);
  for (RunAccount& run : mixed) {
    if (run.node == "node-1") run.devices = 8;
    if (run.node == "node-2") run.user = "ben";
  }
  EXPECT_THAT(HistoriesOf(mixed), IsEmpty());
  EXPECT_THAT(HistoriesOf(Runs(2, 10, 1)), IsEmpty());  // either may be the odd one
}

TEST(NodeHistoryTest, ChanceIsThatOfTheBinomialDistribution) {
  EXPECT_NEAR(ByChance(10, 10), 1.0 / 1024, 1e-9);
  EXPECT_NEAR(ByChance(4, 3), 5.0 / 16, 1e-9);
  EXPECT_NEAR(ByChance(7, 0), 1, 1e-9);
}

}  // namespace
}  // namespace fullbore::fleet
