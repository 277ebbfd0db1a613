#include "base/exec.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/temporary_directory.h"

namespace fullbore {
namespace {

constexpr int kPatienceMs = 60'000;

struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  UniqueFd out, in;
};

// One byte, or "" at the end: of all that could have written.
std::string Next(const UniqueFd& out) {
  pollfd ready = {out.get(), POLLIN, 0};
  if (poll(&ready, 1, kPatienceMs) != 1) return "nothing came";
  char byte = 0;
  return read(out.get(), &byte, 1) == 1 ? std::string(1, byte) : "";
}

// A process of ours that starts `cat` between two pipes and is then killed.
class StarterWasKilled {
 public:
  explicit StarterWasKilled(bool outlives_us) {
    Pipe ready;
    const pid_t starter = fork();
    if (starter == 0) {
      SpawnOptions options;
      options.input = to.out.get();
      options.output = from.in.get();
      options.outlives_us = outlives_us;
      pid_t pid = -1;
      const char started = Spawn({"cat"}, options, pid) == 0 ? 'y' : 'n';
      (void)!write(ready.in.get(), &started, 1);
      for (;;) pause();
    }
    EXPECT_EQ(Next(ready.out), "y");
    kill(starter, SIGKILL);
    EXPECT_EQ(waitpid(starter, nullptr, 0), starter);
    to.out.reset();
    from.in.reset();
  }
  Pipe to, from;
};

TEST(SpawnTest, WhatWasStartedEndsWithUsHoweverWeEnd) {
  const StarterWasKilled with(/*outlives_us=*/false);
  EXPECT_EQ(Next(with.from.out), "") << "its end of the pipe is closed, though its input is not";
}

TEST(SpawnTest, WhatOutlivesUsGoesOn) {
  StarterWasKilled with(/*outlives_us=*/true);
  ASSERT_EQ(write(with.to.in.get(), "x", 1), 1);
  EXPECT_EQ(Next(with.from.out), "x");
  with.to.in.reset();
  EXPECT_EQ(Next(with.from.out), "") << "it ends when its input does";
}

TEST(SpawnTest, AProgramThatCannotBeStartedIsAnError) {
  const auto place = TemporaryDirectory::Make();
  pid_t pid = 7;
  EXPECT_EQ(Spawn({place->path() + "/none"}, {}, pid), ENOENT);
  EXPECT_EQ(pid, -1);
  EXPECT_EQ(Spawn({place->path()}, {}, pid), EACCES);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no process is left";
}

TEST(SpawnTest, GivesTheProgramItsFilesAndVariablesAndNoSignalHeldBack) {
  sigset_t usr1, before;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &usr1, &before), 0);
  Pipe from;
  SpawnOptions options;
  options.output = from.in.get();
  options.environment = {{"WORD", "w"}};
  pid_t pid = -1;
  ASSERT_EQ(Spawn({"sh", "-c", "printf $WORD; cat; kill -USR1 $$; printf survived"}, options, pid), 0);
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  from.in.reset();
  EXPECT_EQ(Next(from.out), "w");
  EXPECT_EQ(Next(from.out), "");
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
}

}  // namespace
}  // namespace fullbore
