// Of which ranks of many the graphs and a step are kept.
#include "timeline/device/kept_ranks.h"

#include <gmock/gmock.h>

namespace fullbore::timeline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kMs = 1'000'000;

// Ranks that meet once a step, each in one group, and come to it as late as is said.
class MadeRanks {
 public:
  MadeRanks& Add(const std::string& group, int64_t late_ms) {
    Arrivals rank;
    rank.rank = static_cast<int>(arrivals_.size());
    rank.kinds = {"all_reduce/" + group};
    rank.group_size = {-1};
    for (int64_t step = 0; step < 4; ++step)
      rank.Add({(step * 100 + late_ms) * kMs, (step * 100 + 99) * kMs}, {});
    arrivals_.push_back(rank);
    brief_.push_back({0, 400 * kMs, 4});
    return *this;
  }
  MadeRanks& Add(size_t ranks, const std::string& group, int64_t late_ms) {
    for (size_t i = 0; i < ranks; ++i) Add(group, late_ms);
    return *this;
  }
  RankInBrief& operator[](size_t rank) { return brief_[rank]; }

  std::vector<size_t> Kept() const { return RanksToKeep(brief_, CompareRanks(arrivals_)); }

 private:
  std::vector<Arrivals> arrivals_;
  std::vector<RankInBrief> brief_;
};

TEST(KeptRanksTest, TheLateOneIsAmongThem) {
  EXPECT_THAT(MadeRanks().Add(30, "dp", 10).Add("dp", 50).Add(10, "dp", 10).Kept(),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 30));
}

TEST(KeptRanksTest, TheFirstTwoAreWhoeverIsWaitedFor) {
  EXPECT_THAT(MadeRanks().Add(2, "dp", 1).Add(20, "dp", 10).Add(20, "dp", 50).Kept(),
              ElementsAre(0, 1, 22, 23, 24, 25, 26, 27, 28));
}

TEST(KeptRanksTest, AreThoseThatTheFirstTwoMeet) {
  const std::vector<size_t> kept =
      MadeRanks().Add("a", 10).Add("b", 10).Add(20, "a", 10).Add(20, "b", 10).Add(20, "c", 50).Kept();
  EXPECT_THAT(kept, SizeIs(kMostKeptRanks));
  EXPECT_THAT(kept, Contains(8));
  EXPECT_THAT(kept, Contains(28));
  EXPECT_THAT(kept, Not(Contains(::testing::Ge(42))));
}

TEST(KeptRanksTest, OnlyMeetingsInTheGraphCount) {
  MadeRanks ranks;
  ranks.Add(40, "dp", 10).Add("dp", 50);
  ranks[40].in_graph = 0;
  EXPECT_THAT(ranks.Kept(), Not(Contains(40)));
}

TEST(KeptRanksTest, WhoHasNoStepsIsNotJudged) {
  MadeRanks ranks;
  ranks.Add("x", 10).Add(4, "dp", 10);
  ranks[0].end_ns = ranks[0].begin_ns;
  EXPECT_THAT(ranks.Kept(), ElementsAre(1, 2, 3, 4));
  for (size_t i = 0; i < 5; ++i) ranks[i].end_ns = ranks[i].begin_ns;
  EXPECT_THAT(ranks.Kept(), ElementsAre(0)) << "if nobody has steps, the first";
}

TEST(KeptRanksTest, TheSecondOneStepsWhileTheFirstDoes) {
  MadeRanks ranks;
  ranks.Add("x", 10).Add("y", 10).Add("z", 10);
  ranks[1] = {500 * kMs, 900 * kMs, 4};
  EXPECT_THAT(ranks.Kept(), ElementsAre(0, 2));
}

}  // namespace
}  // namespace fullbore::timeline
