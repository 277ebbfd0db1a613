#include "measure/collect/channel_place.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"
#include "measure/collect/leftovers.h"

namespace fullbore::collect {
namespace {

namespace fs = std::filesystem;

// Needs the right to mount; not every machine has /dev/shm.
class Memory {
 public:
  explicit Memory(const std::string& path, const char* size) : path_(path) {
    fs::create_directory(path_);
    mounted_ = mount("fullbore-test", path_.c_str(), "tmpfs", 0, size) == 0;
  }
  ~Memory() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

// Scratch directories lie below one in which all may write, but only the owner removes.
class ChannelPlaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(disk());
    if (!IsSafePlace(disk())) GTEST_SKIP() << "scratch directories are not private here";
  }
  std::string disk() const { return scratch_ / "disk"; }
  std::string memory() const { return scratch_ / "memory"; }
  bool IsIn(const std::string& path, const std::string& directory) const {
    return fs::path(path).parent_path() == directory && fs::is_directory(path);
  }

  ScratchDirectory scratch_;
};

TEST_F(ChannelPlaceTest, IsInMemoryAndItsTracesAreOnTheDisk) {
  const Memory mounted(memory(), "size=16m,mode=1777");
  if (!mounted.mounted()) GTEST_SKIP() << "no right to mount";
  const auto place = MakeChannelPlace("run", {memory()}, {disk()});
  ASSERT_TRUE(place);
  EXPECT_TRUE(IsIn(place->channel, memory()));
  EXPECT_TRUE(IsIn(place->traces, disk()));
  Remove(*place);
  EXPECT_TRUE(fs::is_empty(memory()) && fs::is_empty(disk()));
}

TEST_F(ChannelPlaceTest, LittleMemoryIsLeftToTheTraining) {
  const Memory mounted(memory(), "size=4m,mode=1777");
  if (!mounted.mounted()) GTEST_SKIP() << "no right to mount";
  const auto place = MakeChannelPlace("run", {memory()}, {disk()});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->channel, place->traces);
  EXPECT_TRUE(IsIn(place->channel, disk()));
}

TEST_F(ChannelPlaceTest, ADiskIsNotTakenForMemory) {
  fs::create_directory(memory());
  if (IsInMemory(memory())) GTEST_SKIP() << "scratch directories are in memory";
  const auto place = MakeChannelPlace("run", {memory()}, {disk()});
  ASSERT_TRUE(place);
  EXPECT_TRUE(IsIn(place->channel, disk()));
}

TEST_F(ChannelPlaceTest, ADirectoryThatOthersCanChangeIsPassedBy) {
  const std::string open = scratch_ / "open", below = open + "/below", sticky = scratch_ / "sticky";
  fs::create_directories(below);
  fs::create_directory(sticky);
  ASSERT_EQ(chmod(open.c_str(), 0777), 0);
  ASSERT_EQ(chmod(sticky.c_str(), 01777), 0);
  EXPECT_FALSE(IsSafePlace(open));
  EXPECT_FALSE(IsSafePlace(below)) << "its parent can be replaced";
  EXPECT_TRUE(IsSafePlace(sticky));
  EXPECT_FALSE(IsSafePlace(scratch_ / "missing"));
  fs::create_directory_symlink(open, scratch_ / "link");
  EXPECT_FALSE(IsSafePlace(scratch_ / "link"));
  const auto place = MakeChannelPlace("run", {}, {open, below, disk()});
  ASSERT_TRUE(place);
  EXPECT_TRUE(IsIn(place->channel, disk()));
  EXPECT_FALSE(MakeChannelPlace("run", {}, {open}));
}

TEST_F(ChannelPlaceTest, ADirectoryOfAnotherUserIsPassedBy) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot act as another user";
  ASSERT_EQ(chown(disk().c_str(), 1001, 1001), 0);
  EXPECT_FALSE(IsSafePlace(disk()));
}

// systemd removes what a user has in /dev/shm once he has logged out.
TEST_F(ChannelPlaceTest, ThatWasRemovedFromMemoryIsMadeAgain) {
  const Memory mounted(memory(), "size=16m,mode=1777");
  if (!mounted.mounted()) GTEST_SKIP() << "no right to mount";
  const auto place = MakeChannelPlace("run", {memory()}, {disk()});
  ASSERT_TRUE(place);
  fs::remove_all(place->channel);
  fs::remove_all(place->traces);
  Beat(*place);
  EXPECT_TRUE(fs::exists(place->channel + "/recorder"));
  EXPECT_FALSE(fs::exists(place->traces)) << "what is removed from a disk was removed by somebody";
}

TEST_F(ChannelPlaceTest, OfADeadRecorderIsClearedFromMemoryAtOnce) {
  const Memory mounted(memory(), "size=16m,mode=1777");
  if (!mounted.mounted()) GTEST_SKIP() << "no right to mount";
  const auto dead = MakeChannelPlace("dead", {memory()}, {disk()});
  const auto used = MakeChannelPlace("used", {memory()}, {disk()});
  const auto living = MakeChannelPlace("living", {memory()}, {disk()});
  ASSERT_TRUE(dead && used && living);
  for (const auto& place :
       {*dead, *used}) {  // as if written by a process with our pid that began at another time
    const std::string note = place.channel + "/recorder";
    std::ifstream in(note);
    std::string boot, space, pid;
    in >> boot >> space >> pid;
    std::ofstream(note) << boot << "\n" << space << "\n" << pid << "\n1\n";
  }
  std::ofstream(used->channel + "/" + std::to_string(getpid()) + "-1.ring") << "a training";
  EXPECT_EQ(RemoveLeftovers(memory()), 1);
  EXPECT_FALSE(fs::exists(dead->channel));
  EXPECT_TRUE(fs::exists(used->channel) && fs::exists(living->channel));
}

}  // namespace
}  // namespace fullbore::collect
