#include "measure/probe/proc/mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/probe/testing/fake_machine.h"

namespace fullbore::probe {
namespace {

// A disk with one partition under the root, and a tmpfs, an NFS share and a btrfs volume in it. The paths
// need not exist: what does not exist cannot be a symbolic link.
class MountsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    files_.Write("/sys/devices/pci/block/nvme0n1/nvme0n1p2/partition", "2\n");
    files_.MakeDirectory("/sys/devices/pci/block/sdb");
    files_.Link("/sys/dev/block/259:2", "/sys/devices/pci/block/nvme0n1/nvme0n1p2");
    files_.Link("/sys/class/block/sdb", "/sys/devices/pci/block/sdb");
    files_.Write("/proc/self/mountinfo",
                 "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
                 "23 22 0:20 / /fast rw - tmpfs tmpfs rw,size=1k\n"
                 "24 22 0:40 / /data\\040sets rw - nfs4 server:/export rw\n"
                 "a malformed line\n"
                 "25 22 0:41 /sub /volume rw,noatime shared:3 master:1 - btrfs /dev/sdb rw\n"
                 "26 22 0:42 / /s3 rw - fuse.s3fs s3fs rw\n");
  }

  FakeMachine files_;
};

TEST_F(MountsTest, APartitionCountsAsItsDisk) {
  const auto found = DeviceOfPath(files_.root(), "/no-such-directory/train");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->device, "nvme0n1") << "diskstats of the whole disk";
  EXPECT_EQ(found->mount_point, "/");
  EXPECT_EQ(found->file_system, "ext4");
  EXPECT_FALSE(found->remote);
}

TEST_F(MountsTest, TheDeepestMountHoldsThePath) {
  EXPECT_EQ(DeviceOfPath(files_.root(), "/volume/x")->mount_point, "/volume");
  EXPECT_EQ(DeviceOfPath(files_.root(), "/volumes/x")->mount_point, "/") << "whole names only";
}

TEST_F(MountsTest, AnAnonymousDeviceNumberIsFoundByItsSource) {
  EXPECT_EQ(DeviceOfPath(files_.root(), "/volume/x")->device, "sdb");
}

TEST_F(MountsTest, RemoteAndMemoryFileSystemsHaveNoDisk) {
  const auto share = DeviceOfPath(files_.root(), "/data sets/imagenet");
  ASSERT_TRUE(share);
  EXPECT_EQ(share->mount_point, "/data sets");
  EXPECT_TRUE(share->remote);
  EXPECT_EQ(share->device, "");
  EXPECT_TRUE(DeviceOfPath(files_.root(), "/s3/bucket")->remote);
  EXPECT_TRUE(DeviceOfPath(files_.root(), "/fast/x")->in_memory);
}

TEST_F(MountsTest, OfTwoMountsOnOneMountPointTheLaterCounts) {
  files_.Write("/proc/self/mountinfo",
               "22 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n"
               "23 22 0:20 / /x rw - ext4 /dev/sda rw\n"
               "24 22 0:21 / /x rw - tmpfs tmpfs rw\n");
  EXPECT_TRUE(DeviceOfPath(files_.root(), "/x/y")->in_memory);
}

TEST_F(MountsTest, AMissingMountinfoIsAnErrorThatNamesIt) {
  files_.Remove("/proc/self/mountinfo");
  const auto found = DeviceOfPath(files_.root(), "/x");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().text, ::testing::HasSubstr("mountinfo"));
}

}  // namespace
}  // namespace fullbore::probe
