#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <vector>

namespace fullbore {
namespace {

TEST(Crc32cTest, GivesTheKnownValues) {
  // RFC 3720, appendix B.4
  const std::vector<uint8_t> zeros(32, 0), ones(32, 0xff);
  EXPECT_EQ(Crc32c(zeros), 0x8a9136aau);
  EXPECT_EQ(Crc32c(ones), 0x62a8ab43u);
  EXPECT_EQ(Crc32c({}), 0u);
}

}  // namespace
}  // namespace fullbore
