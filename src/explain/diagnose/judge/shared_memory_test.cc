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

constexpr char kOfTorch[] =
    "RuntimeError: unable to allocate shared memory(shm) for file </torch_516_82>: No space left on device "
    "(28)";
constexpr char kOfNccl[] =
    "Error while creating shared memory segment /dev/shm/nccl-xhGQ9b (size 9637888), error: No space left on "
    "device (28)";

record::Recording Raising(record::Recording recording, const char* said = kOfTorch) {
  recording.stages.front().messages.push_back({0, record::Severity::kInfo, "shared-memory", said});
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
            "batches, holds 64 MB only.");
  EXPECT_THAT(diagnosis.findings.front(), Advises("--shm-size=8g"));
  EXPECT_THAT(diagnosis.findings.front(), Not(Advises("ls -lS")));
}

TEST(SharedMemoryTest, IsRaisedBeforeTheFirstStep) {
  const record::Recording recording =
      Raising(ACommandWithoutTraining(10).Reading(Metric::kShmTotal, 64e6).EndedWith(1));
  EXPECT_THAT(Diagnose(recording), FindsCause("shared-memory", "full"));
}

TEST(SharedMemoryTest, WithoutALoaderTheWordsOfWhatFailedAreQuotedAndNoWorkersAreBlamed) {
  const Diagnosis diagnosis =
      Diagnose(Raising(ATraining().Reading(Metric::kShmTotal, 64e6).EndedWith(1), kOfNccl));
  ASSERT_THAT(diagnosis, FindsCause("shared-memory", "full"));
  const Finding& finding = *FindingIn(diagnosis, "shared-memory");
  EXPECT_THAT(finding.title, HasSubstr("/dev/shm/nccl-xhGQ9b (size 9637888)"));
  EXPECT_THAT(finding.title, HasSubstr("ended the run: /dev/shm holds 64 MB only."));
  EXPECT_THAT(finding.title, Not(HasSubstr("worker")));
  EXPECT_THAT(finding, Not(Advises("prefetch_factor")));
  EXPECT_THAT(finding, Advises("--shm-size=8g"));
}

TEST(SharedMemoryTest, WhatTorchSaysNamesTheWorkersBeforeAnyLoaderIsKnown) {
  const Diagnosis diagnosis =
      Diagnose(Raising(ACommandWithoutTraining(10).Reading(Metric::kShmTotal, 64e6).EndedWith(1)));
  EXPECT_THAT(FindingIn(diagnosis, "shared-memory")->title, HasSubstr("loader workers hand over batches"));
  EXPECT_THAT(*FindingIn(diagnosis, "shared-memory"), Advises("prefetch_factor"));
}

// A recorder outside the container: its own /dev/shm until a worker was seen, then the worker's.
ARun SeenFromOutside(double own_total, double own_used, double total, double used) {
  ARun run = WithShm(total, used);
  record::Recording recording = run;
  for (record::Series& series : recording.stages.front().series) {
    const bool is_total = IsOf(series.key, Metric::kShmTotal);
    if (!is_total && !IsOf(series.key, Metric::kShmUsed)) continue;
    for (size_t i = 0; i < 3; ++i) series.readings[i].value = is_total ? own_total : own_used;
  }
  return ARun(std::move(recording));
}

TEST(SharedMemoryTest, WhatTheRecordersOwnHoldsIsNotTheWorkers) {
  EXPECT_THAT(Diagnose(SeenFromOutside(64e9, 1e9, 64e6, 60e6)), FindsCause("shared-memory", "nearly-full"));
  EXPECT_THAT(Diagnose(SeenFromOutside(64e6, 63e6, 64e9, 1e9)), Not(Finds("shared-memory")));
  EXPECT_THAT(Diagnose(SeenFromOutside(64e9, 61e9, 32e9, 1e9)), Not(Finds("shared-memory")));
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

record::Recording OutOfFiles(record::Recording recording,
                             const char* said = "1024: received 0 items of ancdata") {
  recording.stages.front().messages.push_back({0, record::Severity::kInfo, "open-files", said});
  return recording;
}

TEST(SharedMemoryTest, NamesTheLimitOfOpenFilesThatEndedTheRun) {
  const Diagnosis diagnosis = Diagnose(OutOfFiles(WithShm(64e9, 1e9).EndedWith(1)));
  ASSERT_EQ(diagnosis.findings.front().id, "shared-memory");
  EXPECT_EQ(diagnosis.findings.front().cause, "open-files");
  EXPECT_THAT(diagnosis.findings.front().title, HasSubstr("as many files open as it may, 1,024,"));
  EXPECT_THAT(diagnosis.findings.front(), Advises("ulimit -n 65536"));
  EXPECT_THAT(diagnosis.findings.front(), Advises("file_system"));
}

TEST(SharedMemoryTest, IsNotRaisedByALimitThatTheScriptGotOverNorByOneThatIsNone) {
  EXPECT_THAT(Diagnose(OutOfFiles(WithShm(64e9, 1e9).EndedWith(0))), Not(Finds("shared-memory")));
  EXPECT_THAT(Diagnose(OutOfFiles(WithShm(64e9, 1e9).EndedWith(1), "-1: received 0 items of ancdata")),
              Not(Finds("shared-memory")));
}

}  // namespace
}  // namespace fullbore::diagnose
