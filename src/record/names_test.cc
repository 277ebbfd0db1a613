// The names of what is counted: they stand in run files and reports, and lead back to what they name.
#include <gmock/gmock.h>

#include <set>

#include "record/lane.h"
#include "record/share.h"

namespace fullbore::record {
namespace {

TEST(NamesTest, AShareIsFoundByItsName) {
  for (size_t i = 0; i < kShareCount; ++i) {
    const auto share = static_cast<Share>(i);
    EXPECT_EQ(ShareNamed(Name(share)), share) << Name(share);
  }
  EXPECT_EQ(ShareNamed("weather"), std::nullopt);
}

TEST(NamesTest, APartOfTheOthersIsFoundByItsName) {
  for (size_t i = 0; i < kHostOtherCount; ++i) {
    const auto part = static_cast<HostOther>(i);
    EXPECT_EQ(HostOtherNamed(Name(part)), part) << Name(part);
  }
  EXPECT_EQ(HostOtherNamed(""), std::nullopt);
}

TEST(NamesTest, EachLaneHasANameOfItsOwnAndIsOfOneKind) {
  std::set<std::string_view> names;
  for (int i = 0; i < kLaneCount; ++i) {
    const auto lane = static_cast<Lane>(i);
    names.insert(Name(lane));
    const int kinds =
        ((kComputeLanes & Bit(lane)) != 0) + ((kCommLane & Bit(lane)) != 0) + ((kCopyLanes & Bit(lane)) != 0);
    EXPECT_EQ(kinds, 1) << Name(lane);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kLaneCount));
  EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace fullbore::record
