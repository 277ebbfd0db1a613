#include "fleet/part.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

namespace fullbore::fleet {
namespace {

TEST(PartTest, EachKindIsKnownAgainByItsName) {
  std::set<std::string> names;
  for (const Kind kind : AllKinds()) {
    EXPECT_EQ(KindNamed(Name(kind)), kind);
    EXPECT_TRUE(names.insert(Name(kind)).second) << Name(kind);
  }
  EXPECT_EQ(KindNamed("of a later version"), Kind::kNotJudged);
}

TEST(PartTest, PartsOfOneKindAndCauseAreAddedUp) {
  std::vector<Part> parts;
  AddUp(parts, {Kind::kWaste, "input-bound", 1});
  AddUp(parts, {Kind::kWork, "", 2});
  AddUp(parts, {Kind::kWaste, "comm-bound", 4});
  AddUp(parts, {Kind::kWaste, "input-bound", 8});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].kind, Kind::kWork);
  EXPECT_EQ(parts[2].cause, "input-bound");
  EXPECT_EQ(parts[2].device_ns, 9);
}

}  // namespace
}  // namespace fullbore::fleet
