#include "hook/kept_file.h"

#include <gtest/gtest.h>

#include <string>

namespace fullbore::hook {
namespace {

constexpr char kFile[] = "/proc/self/stat";

TEST(KeptFileTest, StaysOpenUntilItIsClosed) {
  KeptFile file{};
  EXPECT_FALSE(file.IsOurs());
  const int fd = file.Get(kFile);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(file.Get(kFile), fd);
  EXPECT_TRUE(file.IsOurs());
  file.Close();
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(KeptFileTest, LeavesAloneWhatHasItsNumberAfterAScriptClosedIt) {
  KeptFile file{};
  const int fd = file.Get(kFile);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(close(fd), 0);
  ASSERT_EQ(open("/dev/null", O_WRONLY | O_CLOEXEC), fd) << "the lowest free number";
  EXPECT_FALSE(file.IsOurs());
  KeptFile another = file;
  another.Close();
  EXPECT_NE(fcntl(fd, F_GETFD), -1) << "it is the script's";
  const int again = file.Get(kFile);
  EXPECT_NE(again, fd);
  EXPECT_TRUE(file.IsOurs());
  file.Close();
  close(fd);
}

TEST(KeptFileTest, ThatIsMissingIsLookedForOnce) {
  const std::string missing = "/proc/self/no-such-file";
  KeptFile file{};
  EXPECT_EQ(file.Get(missing.c_str()), -1);
  EXPECT_EQ(file.Get(kFile), -1);
  file.Close();
}

}  // namespace
}  // namespace fullbore::hook
