#include "measure/isolate/write_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/testing/scratch_directory.h"

namespace fullbore::isolate {
namespace {

// What open() for writing says in a process that has entered the guard: 0, or the error.
int WriteBehind(int guard, const std::string& path) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (guard >= 0 && !EnterWriteGuard(guard)) _exit(EPERM);
    _exit(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) < 0 ? errno : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}

class WriteGuardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (MakeWriteGuard({}).get() < 0) GTEST_SKIP() << "a kernel without Landlock";
    directory_.Write("allowed/old", "mine");
    directory_.Write("other/old", "mine");
    directory_.Write("other/log", "mine");
  }

  ScratchDirectory directory_;
};

TEST_F(WriteGuardTest, WritesBelowThePlacesOnly) {
  const UniqueFd guard = MakeWriteGuard({directory_ / "allowed"});
  EXPECT_EQ(WriteBehind(guard.get(), directory_ / "allowed/old"), 0);
  EXPECT_EQ(WriteBehind(guard.get(), directory_ / "allowed/new"), 0);
  EXPECT_EQ(WriteBehind(guard.get(), directory_ / "other/old"), EACCES);
  EXPECT_EQ(WriteBehind(guard.get(), directory_ / "other/new"), EACCES);
}

TEST_F(WriteGuardTest, AFileMayBeAPlaceToo) {
  const UniqueFd guard = MakeWriteGuard({directory_ / "other/log"});
  EXPECT_EQ(WriteBehind(guard.get(), directory_ / "other/log"), 0);
  EXPECT_EQ(WriteBehind(guard.get(), directory_ / "other/old"), EACCES);
}

TEST_F(WriteGuardTest, APlaceThatDoesNotExistIsLeftOut) {
  const UniqueFd guard = MakeWriteGuard({directory_ / "nowhere", directory_ / "allowed"});
  EXPECT_EQ(WriteBehind(guard.get(), directory_ / "allowed/new"), 0);
}

TEST_F(WriteGuardTest, WhoHasNotEnteredItWritesAsBefore) {
  const UniqueFd guard = MakeWriteGuard({directory_ / "allowed"});
  EXPECT_EQ(WriteBehind(-1, directory_ / "other/old"), 0);
}

}  // namespace
}  // namespace fullbore::isolate
