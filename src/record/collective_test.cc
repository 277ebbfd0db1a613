#include "record/collective.h"

#include <gtest/gtest.h>

namespace fullbore::record {
namespace {

CollectiveStats Calls(const std::string& kind, int64_t ranks) {
  CollectiveStats stats;
  stats.kind = kind;
  stats.group_size = ranks;
  stats.bytes = 8'000'000;
  stats.bytes_ns = stats.sum_ns = 1'000'000;
  return stats;
}

TEST(CollectiveTest, BusBandwidthIsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(*AlgorithmBandwidth(Calls("all_reduce", 4)), 8e9);
  EXPECT_DOUBLE_EQ(*BusBandwidth(Calls("all_reduce", 4)), 12e9);
  EXPECT_DOUBLE_EQ(*BusBandwidth(Calls("_allgather_base", 4)), 6e9);
  EXPECT_DOUBLE_EQ(*BusBandwidth(Calls("reduce_scatter", 4)), 6e9);
  EXPECT_DOUBLE_EQ(*BusBandwidth(Calls("all_to_allv", 8)), 7e9);
  EXPECT_DOUBLE_EQ(*BusBandwidth(Calls("broadcast", 4)), 8e9);
  EXPECT_DOUBLE_EQ(*BusBandwidth(Calls("reduce", 4)), 8e9);
}

TEST(CollectiveTest, WaitingForTheLastRankDoesNotCountAsTransfer) {
  CollectiveStats stats = Calls("all_reduce", 2);
  stats.wait_ns = 750'000;
  EXPECT_DOUBLE_EQ(*AlgorithmBandwidth(stats), 32e9);
  stats.sum_ns *= 2;  // half the calls have an unknown size, and so an unknown wait
  EXPECT_DOUBLE_EQ(*AlgorithmBandwidth(stats), 8e9);
}

TEST(CollectiveTest, UnknownBytesGroupsAndKindsHaveNoBandwidth) {
  CollectiveStats stats = Calls("all_reduce", 2);
  stats.bytes.reset();
  EXPECT_FALSE(AlgorithmBandwidth(stats).has_value());
  stats = Calls("all_reduce", 2);
  stats.group_size.reset();
  EXPECT_FALSE(BusBandwidth(stats).has_value());
  EXPECT_FALSE(BusBandwidth(Calls("send_recv", 2)).has_value());
  stats = Calls("all_reduce", 2);
  stats.wait_ns = stats.sum_ns;
  EXPECT_FALSE(AlgorithmBandwidth(stats).has_value());
}

}  // namespace
}  // namespace fullbore::record
