#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using record::Share;
using testing::ACommandWithoutTraining;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::MadeLoader;
using ::testing::Not;

// A training with two workers, and what was in use of a /dev/shm of this size.
ARun WithShm(double total, double used) {
  return ATraining()
      .FedBy(MadeLoader(2, 100, 90, 20))
      .Reading(Metric::kShmTotal, total)
      .Reading(Metric::kShmUsed, used);
}

record::Recording Raising(record::Recording recording) {
  recording.stages.front().messages.push_back({0, record::Severity::kInfo, "shared-memory",
                                               "RuntimeError: unable to allocate shared memory(shm) for file "
                                               "</torch_516_82>: No space left on device (28)"});
  return recording;
}

record::Recording Killed(const char* signal, double total, double used = 20e6) {
  record::Recording recording = WithShm(total, used).EndedWith(1);
  recording.stages.front().messages.push_back({0, record::Severity::kInfo, "worker-killed", signal});
  return recording;
}

TEST(SharedMemoryTest, IsRaisedByAnAllocationThatFoundNoRoom) {
  // However little was seen in use: one batch alone may be larger than all of it.
  const Diagnosis diagnosis =
      Diagnose(Raising(WithShm(64e6, 1e6).EndedWith(1).InEachStep(Share::kHostOther, 100)));
  ASSERT_EQ(diagnosis.findings.front().id, "shared-memory") << "whatever would gain something";
  EXPECT_EQ(diagnosis.findings.front().title,
            "Want of shared memory ended the run: /dev/shm, through which 2 loader workers hand over "
            "batches, holds 64 MB "
            "only.");
  EXPECT_THAT(diagnosis.findings.front(), Advises("--shm-size=8g"));
  EXPECT_THAT(diagnosis.findings.front(), Not(Advises("ls -lS")));
}

TEST(SharedMemoryTest, IsRaisedBeforeTheFirstStep) {
  const record::Recording recording =
      Raising(ACommandWithoutTraining(10).Reading(Metric::kShmTotal, 64e6).EndedWith(1));
  EXPECT_THAT(Diagnose(recording), FindsCause("shared-memory", "full"));
}

TEST(SharedMemoryTest, IsRaisedByABusErrorWhereItIsSmall) {
  const Diagnosis diagnosis = Diagnose(Killed("Bus error", 64e6));
  ASSERT_EQ(diagnosis.findings.front().id, "shared-memory");
  EXPECT_THAT(diagnosis.findings.front().title, HasSubstr("A bus error ended the run"));
}

TEST(SharedMemoryTest, WhereItIsLargeAndFullSomethingFillsIt) {
  const Diagnosis diagnosis = Diagnose(Killed("Bus error", 64e9, 60e9));
  ASSERT_THAT(diagnosis, FindsCause("shared-memory", "full"));
  EXPECT_THAT(*FindingIn(diagnosis, "shared-memory"), Advises("ls -lS /dev/shm"));
  EXPECT_THAT(FindingIn(diagnosis, "shared-memory")->title, HasSubstr("was full (64 GB)"));
}

TEST(SharedMemoryTest, IsNotRaisedWhereItHadRoomNorByAnotherSignal) {
  EXPECT_THAT(Diagnose(Killed("Bus error", 64e9)), Not(Finds("shared-memory")));
  EXPECT_THAT(Diagnose(Killed("Killed", 64e6)), Not(Finds("shared-memory")));
}

TEST(SharedMemoryTest, IsNotRaisedByARunThatFailedForAnotherReasonBesideLittleUse) {
  EXPECT_THAT(Diagnose(WithShm(64e6, 20e6).EndedWith(1)), Not(Finds("shared-memory")));
}

TEST(SharedMemoryTest, IsNotRaisedByAnAllocationThatTheScriptGotOver) {
  EXPECT_THAT(Diagnose(Raising(WithShm(64e6, 20e6).EndedWith(0))), Not(Finds("shared-memory")));
}

TEST(SharedMemoryTest, WhereItIsNearlyFullItIsSaidAndDoesNotComeFirst) {
  const Diagnosis ended_well = Diagnose(WithShm(64e6, 60e6).EndedWith(0).InEachStep(Share::kDataWait, 100));
  ASSERT_THAT(ended_well, FindsCause("shared-memory", "nearly-full"));
  EXPECT_EQ(FindingIn(ended_well, "shared-memory")->severity, Severity::kInfo);
  EXPECT_EQ(ended_well.findings.front().id, "input-bound");
  EXPECT_EQ(FindingIn(Diagnose(WithShm(64e6, 60e6)), "shared-memory")->severity, Severity::kWarning);
}

TEST(SharedMemoryTest, IsNotRaisedByItsUseWithoutWorkers) {
  const ARun run = ATraining().Reading(Metric::kShmTotal, 64e6).Reading(Metric::kShmUsed, 60e6);
  EXPECT_THAT(Diagnose(run), Not(Finds("shared-memory")));
}

}  // namespace
}  // namespace fullbore::diagnose
