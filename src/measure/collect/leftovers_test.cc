#include "measure/collect/leftovers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/fd.h"
#include "base/testing/scratch_directory.h"

namespace fullbore::collect {
namespace {

namespace fs = std::filesystem;

class LeftoversTest : public ::testing::Test {
 protected:
  std::string Make(const std::string& run = "run") {
    auto made = MakeChannelDirectory(runs_.path(), run);
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : "";
  }

  static void Touch(const std::string& channel, int64_t ago_ns) {
    struct stat status {};
    const std::string note = channel + "/recorder";
    ASSERT_EQ(stat(note.c_str(), &status), 0);
    const timespec then = {status.st_mtim.tv_sec - ago_ns / kNsPerSecond, 0};
    const timespec times[] = {then, then};
    ASSERT_EQ(utimensat(AT_FDCWD, note.c_str(), times, 0), 0);
  }

  static void Silence(const std::string& channel) { Touch(channel, kSilentNs + kNsPerSecond); }

  // The note of a recorder elsewhere, or of one that has ended.
  static void WriteNote(const std::string& channel, const std::string& boot, int64_t pid) {
    std::ofstream(channel + "/recorder") << boot << "\npid:[4026531836]\n" << pid << "\n1\n";
  }

  ScratchDirectory runs_;
};

TEST_F(LeftoversTest, ASilentRecorderOfAnotherMachineCountsAsDead) {
  const std::string channel = Make();
  WriteNote(channel, "another boot", getpid());
  Silence(channel);
  EXPECT_EQ(RemoveLeftovers(runs_.path()), 1);
  EXPECT_FALSE(fs::exists(channel));
}

// Cloned machines and pods have the same host name, and may have the same boot id and the same pids.
TEST_F(LeftoversTest, ARecorderWithAHeartbeatLivesWhateverItsPid) {
  const std::string restarted = Make("restarted"), clone = Make("clone");
  WriteNote(restarted, "another boot", getpid());
  WriteNote(clone, "another boot", 999'999'999);
  Touch(clone, kSilentNs - 60 * kNsPerSecond);
  EXPECT_EQ(RemoveLeftovers(runs_.path()), 0);
  Silence(clone);
  Beat(clone);
  EXPECT_EQ(RemoveLeftovers(runs_.path()), 0);
  EXPECT_TRUE(fs::exists(clone) && fs::exists(restarted));
}

TEST_F(LeftoversTest, AStoppedRecorderOfThisMachineIsKnownToLive) {
  const std::string channel = Make();  // the note names this process
  Touch(channel, 10 * kSilentNs);
  EXPECT_EQ(RemoveLeftovers(runs_.path()), 0);
  EXPECT_TRUE(fs::exists(channel));
}

TEST_F(LeftoversTest, FilesThatAreNotOurChannelsStay) {
  const fs::path empty = runs_ / "x.channel.7", pipe = runs_ / "y.channel.7";
  fs::create_directory(empty);
  fs::create_directory(pipe);
  ASSERT_EQ(mkfifo((pipe / "recorder").c_str(), 0600), 0);
  std::ofstream(runs_ / "notes.channel.txt") << "somebody's";
  EXPECT_EQ(RemoveLeftovers(runs_.path()), 0);
  EXPECT_TRUE(fs::exists(empty) && fs::exists(pipe) && fs::exists(fs::path(runs_ / "notes.channel.txt")));
}

TEST_F(LeftoversTest, TwoRecordersWithTheSamePidHaveADirectoryEach) {
  const std::string first = Make(), second = Make();
  EXPECT_NE(first, second);
  EXPECT_TRUE(fs::exists(first + "/recorder") && fs::exists(second + "/recorder"));
}

TEST_F(LeftoversTest, LookingLeavesNothingBehind) {
  const std::string channel = Make();
  RemoveLeftovers(runs_.path());
  for (const auto& entry : fs::directory_iterator(runs_.path())) EXPECT_EQ(entry.path(), fs::path(channel));
}

TEST_F(LeftoversTest, OnlyItsUserCanEnterAChannel) {
  const auto channel = MakeChannelDirectory(runs_.path(), "run");
  ASSERT_TRUE(channel);
  for (const fs::path& path : {fs::path(*channel), fs::path(*channel) / "recorder"}) {
    EXPECT_EQ(fs::status(path).permissions() & (fs::perms::group_all | fs::perms::others_all),
              fs::perms::none)
        << path;
  }
}

// The names that the next process with our pid would use are as predictable as the name of its run.
TEST_F(LeftoversTest, AChannelIsNotCreatedInAPlantedDirectory) {
  fs::create_directory(runs_ / "theirs");
  std::ofstream(runs_ / "theirs/victim") << "precious";
  const std::string foreseen = runs_ / ("run.channel." + std::to_string(getpid()));
  fs::create_symlink(runs_ / "theirs/victim", runs_ / "theirs/recorder");
  fs::create_directory_symlink(runs_ / "theirs", foreseen);
  const auto channel = MakeChannelDirectory(runs_.path(), "run");
  ASSERT_TRUE(channel) << channel.error().text;
  EXPECT_EQ(ReadFile(runs_ / "theirs/victim").value(), "precious");
  EXPECT_TRUE(fs::is_symlink(foreseen));
}

TEST_F(LeftoversTest, AreNotLookedForBehindALinkOrInAFifo) {
  fs::create_directory(runs_ / "mine");
  WriteNote(runs_ / "mine", "an earlier boot", 1);
  Silence(runs_ / "mine");
  fs::create_directory_symlink(runs_ / "mine", runs_ / "run.channel.1");
  fs::create_directory(runs_ / "run.channel.2");
  ASSERT_EQ(mkfifo((runs_ / "run.channel.2/recorder").c_str(), 0600), 0);
  EXPECT_EQ(RemoveLeftovers(runs_.path()), 0);
  EXPECT_TRUE(fs::exists(runs_ / "mine/recorder"));
}

TEST_F(LeftoversTest, OfAnotherUserAreLeftToThem) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot act as another user";
  fs::create_directory(runs_ / "run.channel.1");
  WriteNote(runs_ / "run.channel.1", "an earlier boot", 1);
  Silence(runs_ / "run.channel.1");
  ASSERT_EQ(chown((runs_ / "run.channel.1").c_str(), 1001, 1001), 0);
  EXPECT_EQ(RemoveLeftovers(runs_.path()), 0);
}

}  // namespace
}  // namespace fullbore::collect
