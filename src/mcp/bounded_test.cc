#include "mcp/bounded.h"

#include <gmock/gmock.h>

namespace fullbore::mcp {
namespace {

constexpr char kName[] = "fullbore://reports/1";

Json Large() {
  Json value = {{"schema", "fullbore.report/1"}, {"findings", Json::array()}};
  for (int i = 0; i < 500; ++i) value["findings"].push_back({{"id", i}, {"evidence", std::string(200, 'e')}});
  value["facts"] = {{"a/b", std::string(5000, 'f')}};
  value["next_step"] = "fullbore help input-bound";
  return value;
}

TEST(BoundedTest, LeavesWhatIsSmallAsItIs) {
  const Json small = {{"a", {1, 2, 3}}};
  EXPECT_EQ(Bounded(small, kName, 1000), small);
}

TEST(BoundedTest, KeepsWhatIsSmallInALargeResultAndNamesTheRest) {
  const Json bounded = Bounded(Large(), kName, 8000);
  EXPECT_LT(bounded.dump().size(), 12'000U);
  EXPECT_EQ(bounded["schema"], "fullbore.report/1");
  EXPECT_EQ(bounded["next_step"], "fullbore help input-bound");
  EXPECT_EQ(bounded["findings"][0]["id"], 0);
}

TEST(BoundedTest, WhatItNamesIsFound) {
  const Json large = Large();
  const Json bounded = Bounded(large, kName, 8000);
  const Json& last = bounded["findings"].back();
  const std::string path = last["resource"].get<std::string>().substr(sizeof kName - 1);
  const auto rest = At(large, path);
  ASSERT_TRUE(rest.has_value()) << path;
  EXPECT_EQ(rest->size(), last["left_out"]);
  EXPECT_EQ(rest->back()["id"], 499);
}

TEST(AtTest, FollowsAPathAndIsNothingElsewhere) {
  const Json large = Large();
  EXPECT_EQ(At(large, "")->size(), large.size());
  EXPECT_EQ(*At(large, "/findings/3/id"), 3);
  EXPECT_TRUE(At(large, "/facts/a~1b").has_value());
  for (const char* path :
       {"/findings/500", "/findings/-1", "/findings/x", "/nothing", "/schema/0", "/", "//"})
    EXPECT_FALSE(At(large, path).has_value()) << path;
}

TEST(AtTest, TheRestOfARestIsCountedFromThere) {
  const Json list = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(*At(list, "/2-/3"), 5);
  EXPECT_EQ(*At(list, "/2-/3-"), Json({5}));
  EXPECT_EQ(*At(list, "/0-"), list);
  for (const char* path : {"/2-/4", "/2-/4-", "/6-", "/-", "/2--"})
    EXPECT_FALSE(At(list, path).has_value()) << path;
}

TEST(AtTest, TakesAPathOfManyPartsWithoutACopyForEach) {
  const Json large = Large();
  std::string path = "/findings";
  for (int i = 0; i < 300'000; ++i) path += "/0-";
  EXPECT_EQ(*At(large, path), large["findings"]);
}

TEST(HeadAndTailTest, DoNotCutACharacter) {
  EXPECT_EQ(HeadOf("a\u00e9", 2), "a");
  EXPECT_EQ(TailOf("\u00e9a", 2), "a");
  EXPECT_EQ(HeadOf("abc", 10), "abc");
}

}  // namespace
}  // namespace fullbore::mcp
