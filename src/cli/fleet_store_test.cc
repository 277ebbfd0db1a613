#include "cli/fleet_store.h"

#include <gmock/gmock.h>

#include "base/clock.h"

namespace fullbore::cli {
namespace {

using testing::HasSubstr;

TEST(FleetStoreTest, WithoutATimeAllRunsCount) {
  EXPECT_EQ(RangeOf({}).value().since_unix_ns, fleet::Range().since_unix_ns);
}

TEST(FleetStoreTest, ATimeCountsBackFromNow) {
  const int64_t before_ns = WallNs();
  const auto range = RangeOf({kFleetFile, "7d"});
  const int64_t after_ns = WallNs();
  constexpr int64_t kWeekNs = 7 * 24 * 3600 * kNsPerSecond;
  ASSERT_TRUE(range.ok());
  EXPECT_GE(range->since_unix_ns, before_ns - kWeekNs);
  EXPECT_LE(range->since_unix_ns, after_ns - kWeekNs);
}

TEST(FleetStoreTest, WhatIsNoTimeIsRefused) {
  for (const char* since : {"tomorrow", "-7d", "0"}) {
    const auto range = RangeOf({kFleetFile, since});
    ASSERT_FALSE(range.ok()) << since;
    EXPECT_THAT(range.error().text, HasSubstr("--since")) << since;
  }
}

}  // namespace
}  // namespace fullbore::cli
