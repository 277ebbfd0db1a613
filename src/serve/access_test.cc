#include "serve/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/testing/scratch_directory.h"

namespace fullbore::serve {
namespace {

using ::testing::HasSubstr;

class TokenFileTest : public ::testing::Test {
 protected:
  TokenFileTest() { std::ofstream(path_) << "0123456789abcdef\n"; }
  void Allow(mode_t mode) { ASSERT_EQ(chmod(path_.c_str(), mode), 0); }

  const ScratchDirectory directory_;
  const std::string path_ = directory_ / "token";
};

TEST_F(TokenFileTest, OneThatOnlyItsOwnerMayReadIsUsedWithoutAWord) {
  Allow(0600);
  EXPECT_EQ(ReadToken(path_).value(), "0123456789abcdef");
  EXPECT_FALSE(ExposureOf(path_));
}

TEST_F(TokenFileTest, OneThatOthersMayChangeIsRefused) {
  for (const mode_t mode : {0666, 0620, 0602}) {
    Allow(mode);
    const auto token = ReadToken(path_);
    ASSERT_FALSE(token.ok()) << mode;
    EXPECT_THAT(token.error().hint, HasSubstr("chmod 600"));
  }
}

TEST_F(TokenFileTest, OneThatOthersMayReadIsCalledExposed) {
  for (const mode_t mode : {0644, 0640, 0604}) {
    Allow(mode);
    EXPECT_TRUE(ReadToken(path_).ok()) << mode;
    EXPECT_THAT(ExposureOf(path_).value_or(""), HasSubstr("chmod 600"));
  }
}

}  // namespace
}  // namespace fullbore::serve
