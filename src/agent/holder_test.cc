#include "agent/holder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fullbore::agent {
namespace {

const std::string kId = "3f29c1d0b7ae4c5587d6a1f2e3b4c5d60718293a4b5c6d7e8f90a1b2c3d4e5f6";
const std::string kUid = "1f0c42a6-93b1-4c0e-8b52-7a4e0f6f2d11";

Membership In(const std::string& path) { return MembershipOf("0::" + path + "\n"); }

TEST(HolderTest, ASlurmJobOfTheOldHierarchies) {
  const Membership found = MembershipOf(
      "11:devices:/slurm/uid_1000/job_123/step_0/task_0\n4:memory:/slurm/uid_1000/job_123/step_0\n1:name=systemd:/"
      "system.slice/slurmd.service\n0::/system.slice/slurmd.service\n");
  EXPECT_EQ(found.holder, (Holder{Kind::kJob, "123", "", "", "", {}}));
  EXPECT_EQ(found.step, "0");
  EXPECT_EQ(In("/slurm_node7/uid_1000/job_9/step_extern").holder.job, "9") << "several slurmd on a machine";
}

TEST(HolderTest, ASlurmJobOfTheUnifiedHierarchy) {
  const Membership task = In("/system.slice/slurmstepd.scope/job_123/step_batch/user/task_special");
  EXPECT_EQ(task.holder.job, "123");
  EXPECT_EQ(task.step, "batch");
  EXPECT_FALSE(task.step_daemon);
  EXPECT_TRUE(In("/system.slice/slurmstepd.scope/job_123/step_0/slurm").step_daemon);
  EXPECT_EQ(In("/system.slice/node7_slurmstepd.scope/job_5/step_0/user/task_0").holder.job, "5");
}

TEST(HolderTest, ASlurmJobThatHasItsSluid) {
  const Membership found = In("/system.slice/slurmstepd.scope/sG0VQ3J3AZ2K00/step_0/user/task_0");
  EXPECT_EQ(found.holder.job, "sG0VQ3J3AZ2K00");
  EXPECT_EQ(found.step, "0");
  EXPECT_TRUE(IsSluid("s0000000000000"));
}

TEST(HolderTest, WhatOnlyLooksLikeASluidIsNone) {
  for (const char* text : {"sG0VQ3J3AZ2K0", "sG0VQ3J3AZ2K000", "SG0VQ3J3AZ2K00", "sg0vq3j3az2k00",
                           "sG0VQ3J3AZ2KI0", "sG0VQ3J3AZ2KU0", "", "session-3.scope"})
    EXPECT_FALSE(IsSluid(text)) << text;
}

TEST(HolderTest, WhatOnlyLooksLikeAJobIsNone) {
  for (const char* path :
       {"/job_123/step_0", "/user.slice/job_123", "/slurm/uid_1000/job_", "/slurm/uid_1000/job_12a/step_0",
        "/slurm/uid_1000", "/system.slice/slurmd.service", "/system.slice/slurmstepd.scope/system",
        "/sG0VQ3J3AZ2K00/step_0", "/system.slice/xslurm/job_1"})
    EXPECT_NE(In(path).holder.kind, Kind::kJob) << path;
}

TEST(HolderTest, APodBySystemd) {
  const std::string path = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" +
                           std::string("1f0c42a6_93b1_4c0e_8b52_7a4e0f6f2d11.slice/cri-containerd-") + kId +
                           ".scope";
  EXPECT_EQ(In(path).holder, (Holder{Kind::kPod, "", kUid, kId.substr(0, 12), "", {}}));
  EXPECT_EQ(In("/kubelet.slice/kubelet-kubepods-pod1f0c42a6_93b1_4c0e_8b52_7a4e0f6f2d11.slice/crio-" + kId +
               ".scope")
                .holder.kind,
            Kind::kPod)
      << "guaranteed, CRI-O, a slice of its own";
}

TEST(HolderTest, APodByCgroupfs) {
  EXPECT_EQ(In("/kubepods/besteffort/pod" + kUid + "/" + kId).holder,
            (Holder{Kind::kPod, "", kUid, kId.substr(0, 12), "", {}}));
}

TEST(HolderTest, AStaticPodHasAHashForItsUid) {
  const std::string hash = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(In("/kubepods/pod" + hash + "/" + kId).holder.pod_uid, hash);
}

TEST(HolderTest, ANeighbourOfOurOwnContainerIsSeenThroughDots) {
  EXPECT_EQ(In("/../../kubepods-besteffort-pod1f0c42a6_93b1_4c0e_8b52_7a4e0f6f2d11.slice/cri-containerd-" +
               kId + ".scope")
                .holder.pod_uid,
            kUid);
  EXPECT_EQ(In("/../../pod" + kUid + "/" + kId).holder.container, kId.substr(0, 12));
}

TEST(HolderTest, WhatOnlyLooksLikeAPodIsNone) {
  for (const std::string& path : std::vector<std::string>{
           "/kubepods.slice/kubepods-burstable.slice", "/kubepods/burstable", "/kubepods/podfather/x",
           "/system.slice/podman.service", "/kubepods.slice/kubepods-pod1f0c42a6.slice",
           "/podzzzzzzzz-93b1-4c0e-8b52-7a4e0f6f2d11/x"})
    EXPECT_NE(In(path).holder.kind, Kind::kPod) << path;
}

TEST(HolderTest, AJobInsideAPodIsTheJobsAndNamesThePod) {
  const Holder holder =
      In("/kubepods/pod" + kUid + "/" + kId + "/system.slice/slurmstepd.scope/job_7/step_0/user").holder;
  EXPECT_EQ(holder.kind, Kind::kJob);
  EXPECT_EQ(holder.job, "7");
  EXPECT_EQ(holder.pod_uid, kUid);
}

TEST(HolderTest, Containers) {
  const Holder container = {Kind::kContainer, "", "", kId.substr(0, 12), "", {}};
  for (const std::string& path : std::vector<std::string>{
           "/system.slice/docker-" + kId + ".scope", "/docker/" + kId,
           "/machine.slice/libpod-" + kId + ".scope/container",
           "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope",
           "/system.slice/nerdctl-" + kId + ".scope"})
    EXPECT_EQ(In(path).holder, container) << path;
}

// Groups below a slice of a user's have names that he chose.
TEST(HolderTest, NobodyPosesAsAnothersJobOrPod) {
  const std::string below = "/user.slice/user-1000.slice/user@1000.service/app.slice";
  for (const std::string& path :
       {below + "/slurmstepd.scope/job_77/step_0", below + "/slurmstepd.scope/sG0VQ3J3AZ2K00/step_0/slurm",
        below + "/kubepods/burstable/pod1f0c42a6-0000-0000-0000-000000000000"}) {
    EXPECT_EQ(In(path).holder.kind, Kind::kSession) << path;
    EXPECT_EQ(In(path).holder.uid, 1000u) << path;
    EXPECT_TRUE(In(path).of_user) << path;
  }
  EXPECT_FALSE(In("/system.slice/slurmstepd.scope/job_77/step_0/user/task_0").of_user);
}

TEST(HolderTest, WhatOnlyLooksLikeAContainerIsNone) {
  for (const std::string& path :
       std::vector<std::string>{"/machine.slice/libpod-conmon-" + kId + ".scope",
                                "/system.slice/docker.service", "/system.slice/docker-abc.scope",
                                "/elsewhere/" + kId, "/system.slice/crio-conmon-" + kId + ".scope"})
    EXPECT_NE(In(path).holder.kind, Kind::kContainer) << path;
}

TEST(HolderTest, SessionsAndServices) {
  EXPECT_EQ(In("/user.slice/user-1000.slice/session-3.scope").holder,
            (Holder{Kind::kSession, "", "", "", "", 1000}));
  EXPECT_EQ(In("/user.slice/user-1000.slice/user@1000.service/app.slice/x.service").holder.kind,
            Kind::kSession);
  EXPECT_EQ(In("/system.slice/jupyterhub.service").holder,
            (Holder{Kind::kService, "", "", "", "jupyterhub.service", {}}));
  for (const char* path : {"/", "/user.slice", "/user.slice/user-root.slice", "/init.scope", ""})
    EXPECT_EQ(In(path).holder.kind, Kind::kNone) << path;
}

TEST(HolderTest, AGroupThatIsGoneSaysSo) {
  EXPECT_TRUE(In("/system.slice/slurmstepd.scope/job_123/step_0/user/task_0 (deleted)").removed);
  EXPECT_EQ(In("/system.slice/slurmstepd.scope/job_123 (deleted)").holder.job, "123");
  EXPECT_FALSE(In("/system.slice/x (deleted)y.service").removed);
}

TEST(HolderTest, AnyTextGivesAnAnswer) {
  for (const std::string& text :
       std::vector<std::string>{"", "\n\n", "0:", "::", "0::", "0::///", "x", "0::/slurm/job_\xff\xfe\"\n",
                                "0::/user.slice/user-99999999999999999999.slice"})
    EXPECT_EQ(MembershipOf(text).holder.kind, Kind::kNone) << text;
  EXPECT_EQ(In("/system.slice/a\"b\xff.service").holder.unit, "a\"b\xff.service") << "the page escapes it";
  EXPECT_EQ(In("/a:b/user-7.slice").holder.uid, 7U) << "colons belong to the path";
}

TEST(HolderTest, ATitleOfSlurmstepdNamesItsJob) {
  EXPECT_EQ(JobInTitle("slurmstepd: [123.batch]"), "123");
  EXPECT_EQ(JobInTitle("slurmstepd: [123.0]\0\0"), "123");
  for (const char* title :
       {"slurmstepd: [123]", "slurmstepd: [.0]", "slurmstepd", "python [1.2]", "slurmstepd: [12x.0]", ""})
    EXPECT_EQ(JobInTitle(title), "") << title;
}

}  // namespace
}  // namespace fullbore::agent
