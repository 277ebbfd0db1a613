#include "measure/isolate/keeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "base/testing/scratch_directory.h"

namespace fullbore::isolate {
namespace {

namespace fs = std::filesystem;

Error Shell(const std::string& text) {
  execlp("sh", "sh", "-c", text.c_str(), nullptr);
  return ErrnoError("cannot start sh", errno);
}

int WaitFor(Keeper& keeper) {
  while (!keeper.status()) usleep(1000);
  return *keeper.status();
}

// A FIFO that a process holds open for writing ends when the process does.
bool Ends(int fifo) {
  char byte = 0;
  ssize_t n;
  while ((n = read(fifo, &byte, 1)) > 0) {
  }
  return n == 0;
}

class KeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(scratch_);
    ASSERT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
  }
  // A background process of another session and no environment, which says when it is there and ignores SIGTERM.
  std::string Stray() const {
    return "env -i setsid sh -c \"trap '' TERM HUP; exec 9>'" + fifo_ +
           "'; echo here >&9; while :; do sleep 1; done\" & ";
  }

  ScratchDirectory directory_;
  std::string scratch_ = directory_ / "scratch", fifo_ = directory_ / "fifo";
};

TEST_F(KeeperTest, TellsHowTheCommandEnded) {
  auto keeper = Keeper::Start([] { return Shell("exit 7"); }, {scratch_}, -1);
  ASSERT_TRUE(keeper) << keeper.error().text;
  EXPECT_EQ(WEXITSTATUS(WaitFor(*keeper)), 7);
  auto killed = Keeper::Start([] { return Shell("kill -9 $$"); }, {scratch_}, -1);
  ASSERT_TRUE(killed);
  EXPECT_EQ(WTERMSIG(WaitFor(*killed)), SIGKILL);
}

TEST_F(KeeperTest, WhyTheCommandDidNotStartIsToldWhole) {
  const auto keeper = Keeper::Start(
      [] {
        return Error{ErrorCode::kNoSpace, "no room", "make some"};
      },
      {scratch_}, -1);
  ASSERT_FALSE(keeper);
  EXPECT_EQ(keeper.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(keeper.error().text, "no room");
  EXPECT_EQ(keeper.error().hint, "make some");
}

TEST_F(KeeperTest, AnExceptionInTheChildIsAnErrorHere) {
  const auto keeper = Keeper::Start([]() -> Error { throw std::runtime_error("a bug"); }, {scratch_}, -1);
  ASSERT_FALSE(keeper);
  EXPECT_EQ(keeper.error().text, "a bug");
}

TEST_F(KeeperTest, WhatTheCommandLeftBehindEndsWithIt) {
  auto keeper = Keeper::Start([&] { return Shell(Stray() + "exit 0"); }, {scratch_}, -1);
  ASSERT_TRUE(keeper);
  const int fifo = open(fifo_.c_str(), O_RDONLY | O_CLOEXEC);
  WaitFor(*keeper);
  keeper->EndRest();
  EXPECT_TRUE(Ends(fifo));
  close(fifo);
  EXPECT_TRUE(fs::exists(scratch_));  // ours to remove
}

TEST_F(KeeperTest, IfTheKeeperIsKilledTheCommandIsToo) {
  auto keeper = Keeper::Start([&] { return Shell("exec 9>'" + fifo_ + "'; while :; do sleep 1; done"); },
                              {scratch_}, -1);
  ASSERT_TRUE(keeper);
  const int fifo = open(fifo_.c_str(), O_RDONLY | O_CLOEXEC);
  kill(keeper->pid(), SIGKILL);
  EXPECT_EQ(WTERMSIG(WaitFor(*keeper)), SIGKILL);
  EXPECT_TRUE(Ends(fifo));
  close(fifo);
}

TEST_F(KeeperTest, IfWeAreKilledEverythingEndsAndTheScratchDirectoryIsRemoved) {
  const pid_t us = fork();
  if (us == 0) {
    auto keeper = Keeper::Start(
        [&] { return Shell("trap '' TERM; " + Stray() + "while :; do sleep 1; done"); }, {scratch_}, -1);
    pause();
  }
  const int fifo = open(fifo_.c_str(), O_RDONLY | O_CLOEXEC);
  char here[5] = "";
  ASSERT_EQ(read(fifo, here, 5), 5);
  kill(us, SIGKILL);
  waitpid(us, nullptr, 0);
  EXPECT_TRUE(Ends(fifo));
  close(fifo);
  while (fs::exists(scratch_)) usleep(1000);  // the test's time limit says that it is not
}

}  // namespace
}  // namespace fullbore::isolate
