#include "explain/diagnose/held_memory.h"

#include <gtest/gtest.h>

namespace fullbore::diagnose {
namespace {

std::optional<HeldMemory> Said(const char* fact) {
  record::RankInfo rank;
  rank.rank = 3;
  rank.facts["memory"] = fact;
  return HeldMemoryOf(rank);
}

TEST(HeldMemoryTest, IsWhatTheHookSays) {
  const auto held = Said(R"({"weights": {"bfloat16": 10}, "gradients": {"float32": 20},
      "states": {"exp_avg": {"float32": 30}, "exp_avg_sq": {"float32": 40}}, "total": 1000, "outside": 50,
      "reserved": 300, "peaks": [[4, 128, 512, 200, 0], [4, 256, 1024, 250, 7]], "under_way": [4, 300, 1200]})");
  ASSERT_TRUE(held);
  EXPECT_EQ(held->rank, 3);
  EXPECT_EQ(held->weights.at("bfloat16"), 10);
  EXPECT_EQ(held->States(), 70);
  EXPECT_EQ(held->Peak(), 250);
  ASSERT_EQ(held->peaks.size(), 2U);
  EXPECT_TRUE(held->peaks[0].first);
  EXPECT_FALSE(held->peaks[1].first);
  EXPECT_EQ(held->peaks[1].batch.width, 256);
  EXPECT_EQ(held->under_way->elements, 1200);
  EXPECT_EQ(held->total, 1000);
}

TEST(HeldMemoryTest, WhatIsNotSaidIsNotKnown) {
  const auto held = Said(R"({"peaks": []})");
  ASSERT_TRUE(held);
  EXPECT_FALSE(held->total || held->outside || held->under_way);
  EXPECT_EQ(held->Peak(), 0);
  EXPECT_FALSE(HeldMemoryOf(record::RankInfo()));
}

TEST(HeldMemoryTest, WhatCannotBeIsLeftOut) {
  for (const char* fact : {"", "7", "[]", "nonsense"}) EXPECT_FALSE(Said(fact)) << fact;
  const auto held = Said(R"({"weights": {"float32": -1, "int8": "many"}, "states": [1], "total": 1e300,
      "peaks": [[0, 1, 1, 9, 0], [1, 2, 3], "x", [1, 1, -1, 5, 0], [1, 1, 1, 1e99, 0]], "under_way": [1, 2]})");
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->weights.empty() && held->states.empty() && held->peaks.empty());
  EXPECT_FALSE(held->total || held->under_way);
}

}  // namespace
}  // namespace fullbore::diagnose
