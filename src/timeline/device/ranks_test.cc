// Ranks that meet, and ranks that only seem to.
#include "timeline/device/ranks.h"

#include <gmock/gmock.h>

namespace fullbore::timeline {
namespace {

constexpr int64_t kMs = 1'000'000;

// Times in milliseconds.
class Rank {
 public:
  explicit Rank(int number) { arrivals_.rank = number; }
  Rank& At(const char* kind, int64_t begin, int64_t end, int32_t peer = -1, int group_size = -1) {
    auto known = std::find(arrivals_.kinds.begin(), arrivals_.kinds.end(), kind);
    if (known == arrivals_.kinds.end()) {
      arrivals_.kinds.emplace_back(kind);
      arrivals_.group_size.push_back(group_size);
      known = std::prev(arrivals_.kinds.end());
    }
    const auto place = static_cast<uint32_t>(known - arrivals_.kinds.begin());
    arrivals_.Add({begin * kMs, end * kMs, place}, {(end - begin) * kMs, peer});
    return *this;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): stands for its arrivals
  operator Arrivals() const { return arrivals_; }

 private:
  Arrivals arrivals_;
};

std::vector<int64_t> WaitsMs(const RankWaits& waits) {
  std::vector<int64_t> ms;
  for (const int64_t ns : waits.wait_ns) ms.push_back(ns < 0 ? ns : ns / kMs);
  return ms;
}

TEST(DeviceRanksTest, ASendMeetsTheReceiveOfItsPeerInOrder) {
  // Forward, the second stage waits for the first; backward, the first one for the second.
  const auto first =
      Rank(0).At("send/pp", 10, 11).At("send/pp", 20, 21).At("recv/pp", 21, 52).At("recv/pp", 72, 73);
  const auto second =
      Rank(1).At("recv/pp", 0, 11).At("recv/pp", 20, 21).At("send/pp", 51, 52).At("send/pp", 72, 73);
  const RankComparison both = CompareRanks({first, second});
  EXPECT_EQ(both.ranks[1].shift_ns, 0) << "their clocks agree";
  EXPECT_THAT(WaitsMs(both.ranks[0]), ::testing::ElementsAre(0, 0, 30, 0));
  EXPECT_THAT(WaitsMs(both.ranks[1]), ::testing::ElementsAre(10, 0, 0, 0));
  EXPECT_EQ(both.ranks[0].meeting[0], both.ranks[1].meeting[0]);
  EXPECT_EQ(both.ranks[0].meeting[2], both.ranks[1].meeting[2]);
}

TEST(DeviceRanksTest, WaitingForAStageIsABubbleAndNoWaitForALateRank) {
  const Arrivals first = Rank(0).At("send/pp", 10, 11);
  const Arrivals second = Rank(1).At("recv/pp", 0, 11);
  const RankComparison both = CompareRanks({first, second});
  record::RankInfo info;
  info.steps.resize(1);
  info.steps[0].wall_ns = info.steps[0].end_ns = 20 * kMs;
  ApplyWaits(second, both.ranks[1], &info);
  EXPECT_EQ(info.comm_wait_ns, 0);
  EXPECT_EQ(info.steps[0].comm_wait_ns, 0);
  EXPECT_EQ(info.noticed.bubble_ns, 10 * kMs);
  EXPECT_EQ(info.noticed.transfer_ns, 1 * kMs);
}

TEST(DeviceRanksTest, WaitingInACollectiveIsForALateRank) {
  const Arrivals first = Rank(0).At("all_reduce/dp", 10, 12);
  const Arrivals late = Rank(1).At("all_reduce/dp", 11, 12);
  const RankComparison both = CompareRanks({first, late});
  record::RankInfo info;
  info.steps.resize(1);
  info.steps[0].wall_ns = info.steps[0].end_ns = 20 * kMs;
  ApplyWaits(first, both.ranks[0], &info);
  EXPECT_EQ(info.comm_wait_ns, 1 * kMs);
  EXPECT_EQ(info.noticed.bubble_ns, 0);
}

TEST(DeviceRanksTest, PeersAreTakenAsRecordedWhereMoreThanTwoStagesShareAGroup) {
  const auto first = Rank(0).At("send/pp", 10, 11, 1);
  const auto second = Rank(1).At("recv/pp", 0, 11, 0).At("send/pp", 30, 31, 2);
  const auto third = Rank(2).At("recv/pp", 5, 31, 1);
  const RankComparison all = CompareRanks({first, second, third});
  EXPECT_THAT(WaitsMs(all.ranks[1]), ::testing::ElementsAre(10, 0));
  EXPECT_THAT(WaitsMs(all.ranks[2]), ::testing::ElementsAre(25));
}

TEST(DeviceRanksTest, WithoutPeersNobodyKnowsWhichOfThreeStagesMeet) {
  const auto first = Rank(0).At("send/pp", 10, 11);
  const auto second = Rank(1).At("recv/pp", 0, 11).At("send/pp", 30, 31);
  const auto third = Rank(2).At("recv/pp", 5, 31);
  const RankComparison all = CompareRanks({first, second, third});
  for (const RankWaits& waits : all.ranks) EXPECT_THAT(WaitsMs(waits), ::testing::Each(-1));
}

TEST(DeviceRanksTest, AStageWhosePartnerIsNotKnownWaitsBeyondTheShortestOfItsKindAndForNoLateRank) {
  const auto stage = [](int number) {
    return Rank(number)
        .At("recv/pp", 0, 11)
        .At("send/pp", 30, 31)
        .At("recv/pp", 50, 51)
        .At("send/pp", 60, 61);
  };
  const RankComparison all = CompareRanks({stage(0), stage(1), stage(2)});
  record::RankInfo info;
  info.steps.resize(1);
  info.steps[0].wall_ns = info.steps[0].end_ns = 100 * kMs;
  ApplyWaits(stage(1), all.ranks[1], &info);
  EXPECT_EQ(info.comm_wait_ns, 0);
  EXPECT_EQ(info.noticed.bubble_ns, 10 * kMs);
  EXPECT_EQ(info.noticed.transfer_ns, 4 * kMs);
}

TEST(DeviceRanksTest, OfOneStageAloneTheBubbleIsKnownButNotWhoIsLate) {
  const Arrivals stage = Rank(0).At("recv/pp", 0, 11).At("recv/pp", 50, 51).At("all_reduce/dp", 60, 70);
  record::RankInfo info;
  info.steps.resize(1);
  info.steps[0].wall_ns = info.steps[0].end_ns = 100 * kMs;
  ApplyWaits(stage, CompareRanks({stage}).ranks[0], &info);
  EXPECT_FALSE(info.comm_wait_ns);
  EXPECT_EQ(info.steps[0].comm_wait_ns, -1);
  EXPECT_EQ(info.noticed.bubble_ns, 10 * kMs);
}

TEST(DeviceRanksTest, ClocksAreAlignedAtSendsAndReceivesIfTheyEndTogether) {
  Rank first(0), second(1), eager(1);
  for (int64_t i = 0; i < 10; ++i) {
    first.At("recv/pp", i * 20, i * 20 + 11);
    second.At("send/pp", 500 + i * 20 + 10, 500 + i * 20 + 11);
    eager.At("send/pp", i * 15, i * 15 + 1);  // does not wait for the receiver
  }
  EXPECT_EQ(CompareRanks({first, second}).ranks[1].shift_ns, -500 * kMs);
  EXPECT_EQ(CompareRanks({first, eager}).ranks[1].shift_ns, 0);
}

TEST(DeviceRanksTest, CollectivesOfAPartOfTheRanksMeetWithinTheirGroup) {
  const auto with_late = [](int rank, const char* tp, const char* dp, int64_t own, int64_t late) {
    return Rank(rank).At(tp, own, late + 1, -1, 2).At(dp, late + 2, 99, -1, 2);
  };
  const RankComparison all = CompareRanks({with_late(0, "all_reduce/1", "all_reduce/3", 75, 75),
                                           with_late(1, "all_reduce/1", "all_reduce/4", 75, 75),
                                           with_late(2, "all_reduce/2", "all_reduce/3", 75, 95),
                                           with_late(3, "all_reduce/2", "all_reduce/4", 95, 95)});
  EXPECT_THAT(WaitsMs(all.ranks[0]), ::testing::ElementsAre(0, 20));
  EXPECT_THAT(WaitsMs(all.ranks[1]), ::testing::ElementsAre(0, 20));
  EXPECT_THAT(WaitsMs(all.ranks[2]), ::testing::ElementsAre(20, 0));
  EXPECT_THAT(WaitsMs(all.ranks[3]), ::testing::ElementsAre(0, 0));
}

TEST(DeviceRanksTest, ACollectiveWithoutAGroupMustBeOnAllRanks) {
  const RankComparison all =
      CompareRanks({Rank(0).At("all_reduce/", 0, 5).At("barrier/", 10, 11),
                    Rank(1).At("all_reduce/", 1, 5).At("barrier/", 10, 11), Rank(2).At("barrier/", 10, 11)});
  EXPECT_THAT(WaitsMs(all.ranks[0]), ::testing::ElementsAre(-1, 0));
  EXPECT_THAT(all.notes, ::testing::Contains(::testing::HasSubstr("do not appear on every rank")));
}

TEST(DeviceRanksTest, ExchangesOfAllRanksMeetOnlyIfTheyEndTogether) {
  const auto rank = [](int number, int64_t late) {
    Rank made(number);
    for (int64_t i = 0; i < 8; ++i) made.At("send_recv/", i * 10 + 1, i * 10 + 5 + (i % 2) * late);
    return made;
  };
  const RankComparison all = CompareRanks({rank(0, 0), rank(1, 0), rank(2, 0)});
  EXPECT_EQ(all.ranks[0].wait_ns[0], 0);
  EXPECT_FALSE(all.ranks[0].of_stages[0]) << "an all-to-all, in which a late rank holds up the others";
  EXPECT_EQ(CompareRanks({rank(0, 0), rank(1, 3), rank(2, 0)}).ranks[0].wait_ns[0], -1);
}

}  // namespace
}  // namespace fullbore::timeline
