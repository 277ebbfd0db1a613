#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/testing/scratch_directory.h"
#include "loader/core/store.h"

namespace fullbore::loader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Expand(const std::string& pattern) {
  auto paths = ExpandPaths({pattern});
  return paths.ok() ? *paths : std::vector<std::string>{"error: " + paths.error().text};
}

TEST(ExpandPathsTest, ExpandsRangesAsBashDoes) {
  EXPECT_THAT(Expand("s3://b/t-{008..010}.tar"),
              ElementsAre("s3://b/t-008.tar", "s3://b/t-009.tar", "s3://b/t-010.tar"));
  EXPECT_THAT(Expand("a{9..11}"), ElementsAre("a9", "a10", "a11"));
  EXPECT_THAT(Expand("a{2..1}b"), ElementsAre("a2b", "a1b"));
  EXPECT_THAT(Expand("{0..1}/{1..2}"), ElementsAre("0/1", "0/2", "1/1", "1/2"));
  EXPECT_THAT(Expand("{x}-{1..}-{0..1}"), ElementsAre("{x}-{1..}-0", "{x}-{1..}-1"));
  EXPECT_THAT(Expand("plain.tar"), ElementsAre("plain.tar"));
}

TEST(ExpandPathsTest, EveryRangeHasItsNumbersInOrderAndInTheirWidth) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int first = static_cast<int>(random() % 2000), last = first + static_cast<int>(random() % 50);
    const int width = 1 + static_cast<int>(random() % 6);
    char begin[16], end[16];
    std::snprintf(begin, sizeof begin, "%0*d", width, first);
    std::snprintf(end, sizeof end, "%0*d", width, last);
    const auto paths = Expand("http://h/p{" + std::string(begin) + ".." + end + "}.tar");
    ASSERT_EQ(paths.size(), static_cast<size_t>(last - first + 1));
    for (int i = 0; i <= last - first; ++i) {
      char number[16];
      std::snprintf(number, sizeof number, "%0*d", width, first + i);
      EXPECT_EQ(paths[static_cast<size_t>(i)], "http://h/p" + std::string(number) + ".tar");
    }
  }
}

TEST(ExpandPathsTest, NoTextMakesItCrashOrGrowWithoutEnd) {
  std::mt19937 random(2);
  constexpr char kAlphabet[] = "{}..0129a-";
  for (int round = 0; round < 2000; ++round) {
    std::string text = "s3://";
    for (size_t i = random() % 14; i > 0; --i) text += kAlphabet[random() % (sizeof kAlphabet - 1)];
    auto paths = ExpandPaths({text});
    EXPECT_TRUE(!paths.ok() || !paths->empty());
  }
  EXPECT_THAT(Expand("s3://b/{0..99999999999}")[0], HasSubstr("more than 1000000 paths"));
}

TEST(ExpandPathsTest, MatchesLocalFilesSortedByTheirBytes) {
  ScratchDirectory root;
  for (const char* name : {"b-10.tar", "B-1.tar", "b-9.tar", "x.txt", "[b]-1.tar", "{1..2}.tar"})
    root.Write(name, "");
  EXPECT_THAT(Expand(root / "?-*.tar"), ElementsAre(root / "B-1.tar", root / "b-10.tar", root / "b-9.tar"));
  EXPECT_THAT(Expand("file://" + (root / "[b]*")), ElementsAre(root / "[b]-1.tar"));
  EXPECT_THAT(Expand(root / "{1..2}.tar"), ElementsAre(root / "{1..2}.tar"));
  EXPECT_THAT(Expand(root / "{9..10}.*")[0], HasSubstr("no file matches"));
  EXPECT_EQ(ExpandPaths({root / "*.gz"}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace fullbore::loader
