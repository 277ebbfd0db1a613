#include "watch/removal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"
#include "record/run_edit.h"
#include "watch/testing/live_writer.h"

namespace fullbore::watch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::LiveWriter;
using ::testing::MatchesRegex;

void StandStill(int) { (void)raise(SIGSTOP); }

// From now on, this process stops where it is about to call unlinkat() with these flags.
bool StopsBeforeUnlink(uint32_t flags) {
  constexpr uint32_t kFlagsAt =
      offsetof(seccomp_data, args) + 2 * sizeof(uint64_t);  // of a little-endian machine
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlinkat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlagsAt),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flags, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {static_cast<uint16_t>(std::size(code)), code};
  return signal(SIGSYS, StandStill) != SIG_ERR && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

class RemovalTest : public ::testing::Test {
 protected:
  // A run that has ended, as the list knows it.
  KnownRun Ended(const std::string& name) {
    LiveWriter(directory_.path(), name, 0.5).Seconds(3).End();
    return Listed(name);
  }
  KnownRun Listed(const std::string& name) {
    RunIndex index(directory_.path());
    index.Update(WallNs());
    return index.runs().at(name);
  }
  void Write(const std::string& name, const std::string& text) { std::ofstream(directory_ / name) << text; }
  bool Exists(const std::string& name) {
    return fs::is_symlink(directory_ / name) || fs::exists(directory_ / name);
  }
  std::string WhyNot(const KnownRun& run) {
    const auto removed = RemoveRun(directory_.path(), run);
    return removed ? "it was deleted" : removed.error().text;
  }
  // A process that deletes the run and stands still before it calls unlinkat() with these flags; 0: none could be made.
  pid_t StandingRemoval(const KnownRun& run, uint32_t flags) {
    const pid_t child = fork();
    if (child == 0) {
      if (StopsBeforeUnlink(flags)) (void)RemoveRun(directory_.path(), run);
      _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status) ? child : 0;
  }
  static void Kill(pid_t child) {
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
  }
  std::string OnlyEntry() { return fs::directory_iterator(directory_.path())->path().filename(); }
  size_t Entries() {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }

  ScratchDirectory directory_;
};

TEST_F(RemovalTest, ARunGoesWithWhatWasWrittenBesideItAndNothingElse) {
  const KnownRun run = Ended("train");
  Ended("train-2");
  Write("train.html", "<!doctype html>\n<html><head><meta name=\"generator\" content=\"fullbore\">");
  Write("train.rank0-step40.json.zst", "window");
  Write("train.notes.txt", "somebody's");
  Write("train.json.zst", "somebody's");
  const auto removed = RemoveRun(directory_.path(), run);
  ASSERT_TRUE(removed) << removed.error().text;
  EXPECT_GT(*removed, run.stamp.bytes);
  for (const char* gone : {"train.fbr", "train.html", "train.rank0-step40.json.zst"})
    EXPECT_FALSE(Exists(gone)) << gone;
  for (const char* left : {"train-2.fbr", "train.notes.txt", "train.json.zst"})
    EXPECT_TRUE(Exists(left)) << left;
}

TEST_F(RemovalTest, AUsersOwnPageOfTheSameNameStays) {
  const KnownRun run = Ended("train");
  Write("train.html", "<html>about my training");
  ASSERT_TRUE(RemoveRun(directory_.path(), run));
  EXPECT_TRUE(Exists("train.html"));
}

TEST_F(RemovalTest, ARunThatIsBeingRecordedStays) {
  LiveWriter writer(directory_.path(), "live", 0.5);
  writer.Seconds(3);
  EXPECT_THAT(WhyNot(Listed("live")), HasSubstr("it is being recorded"));
  KnownRun silent = Listed("live");
  silent.state = RunState::kCutOff;  // as it was when it was listed
  EXPECT_THAT(WhyNot(silent), HasSubstr("it is being recorded")) << "its recorder has gone on meanwhile";
  EXPECT_TRUE(Exists("live.fbr"));
}

TEST_F(RemovalTest, ARunWhoseRecorderStandsStillStays) {
  LiveWriter writer(directory_.path(), "live", 0.5);
  writer.Seconds(3);
  for (const char* file : {"live.fbr", "live.fbr-wal"})
    fs::last_write_time(directory_ / file, fs::file_time_type::clock::now() - std::chrono::minutes(1));
  const KnownRun silent = Listed("live");
  ASSERT_EQ(silent.state, RunState::kCutOff);
  EXPECT_THAT(WhyNot(silent), HasSubstr("a program has it open"));
  EXPECT_TRUE(Exists("live.fbr"));
}

TEST_F(RemovalTest, APinnedRunStays) {
  Ended("good");
  ASSERT_TRUE(record::SetTags(directory_ / "good.fbr", {{kPinTag, "yes"}}));
  EXPECT_THAT(WhyNot(Listed("good")), HasSubstr("it is pinned"));
}

TEST_F(RemovalTest, WhatHasChangedSinceItWasListedStays) {
  const KnownRun run = Ended("train");
  ASSERT_TRUE(record::SetNote(directory_ / "train.fbr", "the best one"));
  EXPECT_THAT(WhyNot(run), HasSubstr("it has changed since it was listed"));
  EXPECT_TRUE(Exists("train.fbr"));
  EXPECT_EQ(Entries(), 1u) << "it has its own name again";
}

TEST_F(RemovalTest, ALinkInItsPlaceIsNotFollowed) {
  const KnownRun run = Ended("train");
  Write("precious", "not a run");
  fs::remove(directory_ / "train.fbr");
  fs::create_symlink(directory_ / "precious", directory_ / "train.fbr");
  EXPECT_THAT(WhyNot(run), HasSubstr("a link stands in its place"));
  EXPECT_TRUE(Exists("precious") && Exists("train.fbr"));
}

TEST_F(RemovalTest, AnotherUsersRunStays) {
  const KnownRun run = Ended("train");
  if (chown((directory_ / "train.fbr").c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root can make one";
  EXPECT_THAT(WhyNot(run), HasSubstr("it belongs to the user number 12345"));
  EXPECT_TRUE(Exists("train.fbr"));
}

TEST_F(RemovalTest, TheFolderOfARunOnSeveralMachinesGoesWhole) {
  fs::create_directory(directory_ / "job.fbr");
  for (const char* node : {"a", "b"}) LiveWriter(directory_ / "job.fbr", node, 0.5).Seconds(3).End();
  ASSERT_TRUE(RemoveRun(directory_.path(), Listed("job")));
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(RemovalTest, AFolderThatHoldsSomethingElseStaysWhole) {
  fs::create_directory(directory_ / "job.fbr");
  LiveWriter(directory_ / "job.fbr", "a", 0.5).Seconds(3).End();
  Write("job.fbr/notes.txt", "somebody's");
  EXPECT_THAT(WhyNot(Listed("job")), HasSubstr("holds 'notes.txt'"));
  EXPECT_TRUE(Exists("job.fbr/a.fbr") && Exists("job.fbr/notes.txt"));
}

TEST_F(RemovalTest, WhatAKilledRemovalLeftIsFinishedAndNotWhatALiveOneIsAt) {
  const pid_t remover = StandingRemoval(Ended("train"), 0);
  if (remover == 0) GTEST_SKIP() << "this system lets nobody filter system calls";
  ASSERT_EQ(Entries(), 1u);
  EXPECT_THAT(OnlyEntry(), MatchesRegex("\\.[0-9a-f]{16}\\.deleted"));
  FinishRemovals(directory_.path());
  EXPECT_EQ(Entries(), 1u) << "its process lives";
  Kill(remover);
  FinishRemovals(directory_.path());
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(RemovalTest, AFolderThatAKilledRemovalLeftIsFinishedWithOrWithoutItsFiles) {
  for (const uint32_t flags : {0, AT_REMOVEDIR}) {
    fs::create_directory(directory_ / "job.fbr");
    for (const char* node : {"a", "b"}) LiveWriter(directory_ / "job.fbr", node, 0.5).Seconds(3).End();
    const pid_t remover = StandingRemoval(Listed("job"), flags);
    if (remover == 0) GTEST_SKIP() << "this system lets nobody filter system calls";
    EXPECT_EQ(fs::is_empty(directory_ / OnlyEntry()), flags == AT_REMOVEDIR);
    FinishRemovals(directory_.path());
    EXPECT_EQ(Entries(), 1u) << "its process lives";
    Kill(remover);
    FinishRemovals(directory_.path());
    EXPECT_EQ(Entries(), 0u);
  }
}

TEST_F(RemovalTest, WhatOnlyLooksLikeALeftoverStays) {
  constexpr char kAside[] = ".0123456789abcdef.deleted";
  const auto stays = [&](const char* why) {
    FinishRemovals(directory_.path());
    EXPECT_TRUE(Exists(kAside)) << why;
    fs::remove_all(directory_ / kAside);
  };
  Write(kAside, "somebody's");
  stays("it is no run");
  Write("precious", "somebody's");
  fs::create_symlink(directory_ / "precious", directory_ / kAside);
  stays("it is a link");
  fs::create_directory(directory_ / kAside);
  Write(std::string(kAside) + "/notes.txt", "somebody's");
  stays("it holds something else");
  Ended("good");
  ASSERT_TRUE(record::SetTags(directory_ / "good.fbr", {{kPinTag, "yes"}}));
  fs::rename(directory_ / "good.fbr", directory_ / kAside);
  stays("it was pinned in the last moment");
  Ended("train");
  fs::rename(directory_ / "train.fbr", directory_ / ".train.deleted");
  FinishRemovals(directory_.path());
  EXPECT_TRUE(Exists(".train.deleted")) << "no removal makes such a name";
  EXPECT_TRUE(Exists("precious"));
}

}  // namespace
}  // namespace fullbore::watch
