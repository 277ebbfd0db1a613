#include "agent/processes.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "measure/probe/testing/fake_machine.h"

namespace fullbore::agent {
namespace {

using testing::ElementsAre;

constexpr char kSlurm[] = "0::/system.slice/slurmstepd.scope/";
const std::string kPodUid = "1f0c42a6-93b1-4c0e-8b52-7a4e0f6f2d11";

Holder Job(const std::string& number) { return {Kind::kJob, number, "", "", "", {}}; }

class ProcessesTest : public testing::Test {
 protected:
  ProcessesTest() { Put(1, "0::/init.scope", 0); }
  void Put(int64_t pid, const std::string& cgroup, uint32_t uid, const std::string& environment = "",
           const std::string& title = "") {
    const std::string directory = "/proc/" + std::to_string(pid);
    files_.Write(directory + "/cgroup", cgroup + "\n");
    files_.Write(directory + "/status", "Name:\tpython\nUid:\t" + std::to_string(uid) + "\t0\t0\t0\n");
    files_.Write(directory + "/environ", environment);
    files_.Write(directory + "/cmdline", title);
  }
  void Scan() { processes_.Scan(now_ns_ += 5 * kNsPerSecond); }

  probe::FakeMachine files_;
  Processes processes_{files_.root(), [](uint32_t uid) { return "u" + std::to_string(uid); }};
  int64_t now_ns_ = 0;
};

TEST_F(ProcessesTest, AJobIsItsTasksAndItsUserIsTheirs) {
  Put(10, std::string(kSlurm) + "job_7/step_0/slurm", 0);
  Put(11, std::string(kSlurm) + "job_7/step_0/user/task_0", 1000);
  Put(12, std::string(kSlurm) + "job_7/step_extern/user/task_special", 0);
  Scan();
  const Group& group = processes_.groups().at(Job("7"));
  EXPECT_EQ(group.processes, 3);
  EXPECT_EQ(group.user, "u1000");
  files_.Remove("/proc/11");
  Scan();
  EXPECT_EQ(processes_.groups().at(Job("7")).processes, 2);
  EXPECT_FALSE(processes_.Find(11));
}

TEST_F(ProcessesTest, SlurmstepdSaysTheNumberOfAJobThatHasItsSluid) {
  Put(10, std::string(kSlurm) + "sG0VQ3J3AZ2K00/step_0/slurm", 0, "", "slurmstepd: [123.0]");
  Put(11, std::string(kSlurm) + "sG0VQ3J3AZ2K00/step_0/user/task_0", 1000, "", "slurmstepd: [9.0]");
  Scan();
  EXPECT_EQ(processes_.groups().at(Job("sG0VQ3J3AZ2K00")).job_number, "123") << "not the task's";
}

TEST_F(ProcessesTest, TheEnvironmentSaysWhichDevicesAJobWasGiven) {
  Put(11, std::string(kSlurm) + "job_7/step_0/user/task_0", 1000,
      std::string("A=1\0SLURM_JOB_GPUS=2,3\0", 23));
  Scan();
  EXPECT_THAT(processes_.groups().at(Job("7")).allocation.minor_numbers, ElementsAre(2, 3));
  EXPECT_EQ(processes_.sight().environments, true);
}

TEST_F(ProcessesTest, AnEnvironmentThatComesWithTheProgramIsStillSeen) {
  Put(11, std::string(kSlurm) + "job_7/step_0/user/task_0", 1000);
  for (int i = 0; i < 100; ++i) {
    Put(12, std::string(kSlurm) + "job_7/step_extern/user/task_special", 0, std::string("SLURM_JOB_GPUS=9"));
    if (i == 4) Put(11, std::string(kSlurm) + "job_7/step_0/user/task_0", 1000, "SLURM_STEP_GPUS=1");
    Scan();
  }
  EXPECT_THAT(processes_.groups().at(Job("7")).allocation.minor_numbers, ElementsAre(1));
}

TEST_F(ProcessesTest, TheOldHierarchySaysItToEverybody) {
  Put(11, "5:devices:/slurm/uid_1000/job_7/step_0\n4:memory:/slurm/uid_1000/job_7/step_0/task_0", 1000);
  files_.Write("/sys/fs/cgroup/devices/slurm/uid_1000/job_7/devices.list", "c 195:4 rwm\n");
  files_.Remove("/proc/11/environ");
  Scan();
  EXPECT_THAT(processes_.groups().at(Job("7")).allocation.minor_numbers, ElementsAre(4));
}

TEST_F(ProcessesTest, WhoseStepHasNoSlurmstepdHasOutlivedIt) {
  Put(10, std::string(kSlurm) + "job_7/step_1/slurm", 0);
  Put(11, std::string(kSlurm) + "job_7/step_1/user/task_0", 1000);
  Put(12, std::string(kSlurm) + "job_7/step_0/user/task_0", 1000);
  Put(13, "4:memory:/slurm/uid_1000/job_8/step_0/task_0", 1000);
  Put(14, std::string(kSlurm) + "job_9/step_0/user/task_0 (deleted)", 1000);
  Scan();
  EXPECT_FALSE(processes_.Find(11)->outlived);
  EXPECT_TRUE(processes_.Find(12)->outlived);
  EXPECT_FALSE(processes_.Find(13)->outlived) << "the old hierarchies have no slurmstepd among the tasks";
  EXPECT_TRUE(processes_.Find(14)->outlived);
}

TEST_F(ProcessesTest, WhoCameAfterTheScanIsFoundAndNotJudged) {
  Scan();
  Put(12, std::string(kSlurm) + "job_7/step_0/user/task_0", 1000);
  EXPECT_EQ(processes_.Find(12)->in.holder, Job("7"));
  EXPECT_FALSE(processes_.Find(13));
  Scan();
  EXPECT_TRUE(processes_.Find(12)->outlived) << "its step has no slurmstepd";
}

TEST_F(ProcessesTest, WhereOthersAreHiddenNobodyIsSaidToHaveOutlivedHisJob) {
  files_.Remove("/proc/1");
  Put(12, std::string(kSlurm) + "job_7/step_0/user/task_0", 1000);
  Scan();
  EXPECT_EQ(processes_.sight().processes, false);
  EXPECT_FALSE(processes_.Find(12)->outlived);
}

TEST_F(ProcessesTest, AContainerWithNumbersOfItsOwnDoesNotSeeTheOthers) {
  const auto sees_in = [&](const char* space) {
    const std::filesystem::path link = files_.root() + "/proc/self/ns/pid";
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::remove(link);
    std::filesystem::create_symlink(space, link);
    Scan();
    return processes_.sight().processes;
  };
  EXPECT_EQ(sees_in("pid:[4026531836]"), true);
  EXPECT_EQ(sees_in("pid:[4026532448]"), false);
}

TEST_F(ProcessesTest, AProcessThatIsMovedToItsGroupLaterIsFoundThere) {
  Put(11, "0::/system.slice/slurmd.service", 1000);
  Scan();
  EXPECT_TRUE(processes_.groups().empty());
  Put(11, std::string(kSlurm) + "job_7/step_0/user/task_0", 1000);
  Scan();
  EXPECT_EQ(processes_.groups().at(Job("7")).processes, 1);
}

TEST_F(ProcessesTest, AnOldProcessThatIsMovedIsFoundWithinAMinute) {
  Put(11, "0::/system.slice/slurmd.service", 1000);
  for (int i = 0; i < 20; ++i) Scan();
  Put(11, std::string(kSlurm) + "job_7/step_0/user/task_0", 1000);
  for (int i = 0; i < 12; ++i) Scan();
  EXPECT_EQ(processes_.groups().at(Job("7")).processes, 1);
}

TEST_F(ProcessesTest, WhatVanishesWhileItIsReadIsNobodys) {
  files_.MakeDirectory("/proc/11");
  files_.Write("/proc/12/cgroup", std::string(kSlurm) + "job_7/step_0/user\n");
  Scan();
  EXPECT_FALSE(processes_.Find(11));
  EXPECT_EQ(processes_.groups().at(Job("7")).user, "");
  EXPECT_FALSE(processes_.Find(12)->uid);
}

TEST_F(ProcessesTest, TheKubeletsDirectoryOfLogsNamesAPod) {
  files_.MakeDirectory("/var/log/pods/team-a_train-0_" + kPodUid);
  files_.MakeDirectory("/var/log/pods/odd");
  Put(11, "0::/kubepods/pod" + kPodUid + "/" + std::string(64, 'a'), 0);
  Scan();
  EXPECT_EQ(processes_.PodOf(kPodUid).name, "train-0");
  EXPECT_EQ(processes_.PodOf(kPodUid).namespace_name, "team-a");
  EXPECT_EQ(processes_.PodOf("other").name, "");
}

TEST_F(ProcessesTest, WhoseSessionOrServiceItIsSaysItsUser) {
  Put(11, "0::/user.slice/user-1000.slice/session-3.scope", 1000);
  Put(12, "0::/system.slice/jupyterhub.service", 1001);
  Put(13, "0::/", 1002);
  Scan();
  EXPECT_EQ(processes_.Find(11)->in.holder.uid, 1000U);
  EXPECT_EQ(processes_.Find(12)->in.holder.uid, 1001U);
  EXPECT_EQ(processes_.Find(13)->in.holder.uid, 1002U);
}

TEST_F(ProcessesTest, WithoutProcThereIsNobody) {
  Processes nowhere("/nonexistent", UserNames());
  nowhere.Scan(0);
  EXPECT_TRUE(nowhere.groups().empty());
}

TEST(UserNamesTest, AreThoseOfTheMachineAndElseTheNumber) {
  const NameOfUser name = UserNames();
  EXPECT_EQ(name(0), "root");
  EXPECT_EQ(name(4000000001U), "4000000001");
}

}  // namespace
}  // namespace fullbore::agent
