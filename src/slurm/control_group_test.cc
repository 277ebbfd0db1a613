extern "C" {
#include "slurm/control_group.h"
}

#include <gtest/gtest.h>

#include <string>

namespace fullbore {
namespace {

std::string Outside(const std::string& line) {
  char path[PATH_MAX] = "";
  return PlaceOutside(line.c_str(), path) ? path : "";
}

TEST(ControlGroupTest, OfTheFirstVersionIsLeftForTheTop) {
  EXPECT_EQ(Outside("6:freezer:/slurm_node/uid_5/job_1/step_0"), "/sys/fs/cgroup/freezer/cgroup.procs");
  EXPECT_EQ(Outside("3:cpu,cpuacct:/slurm/uid_5/job_1"), "/sys/fs/cgroup/cpu,cpuacct/cgroup.procs");
}

TEST(ControlGroupTest, OfTheSecondVersionIsLeftForSlurmsOwnBesideTheJobs) {
  for (const char* job : {"job_12", "sDK5N2C8VRT001"}) {
    EXPECT_EQ(Outside("0::/system.slice/slurmstepd.scope/" + std::string(job) + "/step_0/slurm"),
              "/sys/fs/cgroup/system.slice/slurmstepd.scope/system/cgroup.procs");
  }
  EXPECT_EQ(Outside("0::/system.slice/node7_slurmstepd.scope/job_12/step_batch/slurm"),
            "/sys/fs/cgroup/system.slice/node7_slurmstepd.scope/system/cgroup.procs");
}

TEST(ControlGroupTest, ThatIsNoneOfAStepIsKept) {
  for (const char* line :
       {"", "0", "0::", "0::/", "6:freezer:/", "1:name=systemd:/system.slice/slurmd.service",
        "0::/system.slice/slurmd.service", "0::/system.slice/slurmstepd.scope/system"})
    EXPECT_EQ(Outside(line), "") << line;
  EXPECT_EQ(Outside("0::/" + std::string(PATH_MAX, 'x') + "/slurmstepd.scope/job_1"), "");
}

}  // namespace
}  // namespace fullbore
