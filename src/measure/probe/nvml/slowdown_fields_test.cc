#include "measure/probe/nvml/slowdown_fields.h"

#include <gtest/gtest.h>

namespace fullbore::probe::nvml {
namespace {

TEST(SlowdownFieldsTest, TheNumbersFollowTheDriverBranch) {
  EXPECT_EQ(SlowdownFieldsOf("575.51.03")->software_thermal, 251u);
  EXPECT_EQ(SlowdownFieldsOf("580.82.07")->hardware_thermal, 252u);
  EXPECT_EQ(SlowdownFieldsOf("580.82.07")->power_brake, 253u);
  EXPECT_EQ(SlowdownFieldsOf("590.44.01")->software_thermal, 269u);
  EXPECT_EQ(SlowdownFieldsOf("595.10")->power_brake, 271u);
}

TEST(SlowdownFieldsTest, DriversBeforeTheCountersAndUnreadableVersionsHaveNone) {
  for (const char* version : {"570.133.20", "550.54.15", "", "unknown", "59", "590", "590x.1", ".590"})
    EXPECT_FALSE(SlowdownFieldsOf(version)) << version;
}

}  // namespace
}  // namespace fullbore::probe::nvml
