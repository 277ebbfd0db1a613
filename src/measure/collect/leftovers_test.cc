#include "measure/collect/leftovers.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/testing/scratch_directory.h"

namespace fullbore::collect {
namespace {

namespace fs = std::filesystem;

class Leftovers : public testing::Test {
 protected:
  std::string Runs() const { return directory_ / "."; }
  // Says what a recorder of an earlier boot of this machine would say.
  void WriteNoteOfTheDead(const fs::path& directory) const {
    std::string host(256, '\0');
    ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
    std::ofstream(directory / "recorder") << host.c_str() << "\nan earlier boot\n\n1\n1\n";
  }
  const ScratchDirectory directory_;
};

TEST_F(Leftovers, AreRemovedOnceTheirRecorderIsDead) {
  auto channel = MakeChannelDirectory(Runs(), "run");
  ASSERT_TRUE(channel) << channel.error().text;
  EXPECT_EQ(RemoveLeftovers(Runs()), 0) << "this process lives";
  WriteNoteOfTheDead(*channel);
  EXPECT_EQ(RemoveLeftovers(Runs()), 1);
  EXPECT_FALSE(fs::exists(*channel));
}

TEST_F(Leftovers, AChannelIsOfItsUserAlone) {
  const auto channel = MakeChannelDirectory(Runs(), "run");
  ASSERT_TRUE(channel);
  for (const fs::path& path : {fs::path(*channel), fs::path(*channel) / "recorder"}) {
    EXPECT_EQ(fs::status(path).permissions() & (fs::perms::group_all | fs::perms::others_all),
              fs::perms::none)
        << path;
  }
}

// The names that the next process with our number would take are as easily foreseen as its run's.
TEST_F(Leftovers, AChannelIsNotMadeInWhatSomebodyPlanted) {
  fs::create_directory(directory_ / "theirs");
  std::ofstream(directory_ / "theirs/victim") << "precious";
  const std::string foreseen = directory_ / ("run.channel." + std::to_string(getpid()));
  fs::create_symlink(directory_ / "theirs/victim", directory_ / "theirs/recorder");
  fs::create_directory_symlink(directory_ / "theirs", foreseen);
  const auto channel = MakeChannelDirectory(Runs(), "run");
  ASSERT_TRUE(channel) << channel.error().text;
  EXPECT_EQ(ReadFile(directory_ / "theirs/victim").value(), "precious");
  EXPECT_TRUE(fs::is_symlink(foreseen));
}

TEST_F(Leftovers, AreNotLookedForBehindALinkNorInAFifo) {
  fs::create_directory(directory_ / "mine");
  WriteNoteOfTheDead(directory_ / "mine");
  fs::create_directory_symlink(directory_ / "mine", directory_ / "run.channel.1");
  fs::create_directory(directory_ / "run.channel.2");
  ASSERT_EQ(mkfifo((directory_ / "run.channel.2/recorder").c_str(), 0600), 0);
  EXPECT_EQ(RemoveLeftovers(Runs()), 0);
  EXPECT_TRUE(fs::exists(directory_ / "mine/recorder"));
}

TEST_F(Leftovers, OfAnotherUserAreLeftToThem) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot act as another user";
  fs::create_directory(directory_ / "run.channel.1");
  WriteNoteOfTheDead(directory_ / "run.channel.1");
  ASSERT_EQ(chown((directory_ / "run.channel.1").c_str(), 1001, 1001), 0);
  EXPECT_EQ(RemoveLeftovers(Runs()), 0);
}

}  // namespace
}  // namespace fullbore::collect
