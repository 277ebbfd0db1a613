#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using record::Share;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using testing::MadeLoader;
using ::testing::Not;

ARun WithStalls(ARun run, double stalled) { return run.Reading(Metric::kPsiMemorySome, stalled); }

// Waits for half of its time for a loader whose fetches take 200 ms, `cpu_ms` of them on a core.
ARun WaitingForALoader(int64_t cpu_ms) {
  return ATraining()
      .InEachStep(Share::kDataWait, 100)
      .FedBy(MadeLoader(1, 100, 200, cpu_ms))
      .Reading(Metric::kProcessIoRead, 30e6, {{"role", "loader"}});
}

TEST(HostMemoryTest, IsRaisedByStallsForMemory) {
  EXPECT_THAT(Diagnose(WithStalls(ATraining(), 0.2)), Finds("host-memory"));
}

TEST(HostMemoryTest, IsNotRaisedByFewStalls) {
  EXPECT_THAT(Diagnose(WithStalls(ATraining(), 0.04)), Not(Finds("host-memory")));
}

TEST(HostMemoryTest, IsRaisedByFewerStallsWhereTheLimitIsReached) {
  for (const double stalls : {0.03, 0.01}) {
    const Diagnosis diagnosis = Diagnose(WithStalls(ATraining(), stalls)
                                             .Reading(Metric::kCgroupMemoryUsed, 16e9)
                                             .Reading(Metric::kCgroupMemoryLimit, 16e9));
    EXPECT_EQ(FindingIn(diagnosis, "host-memory") != nullptr, stalls > 0.02) << stalls;
  }
}

TEST(HostMemoryTest, IsNotRaisedByALimitThatIsFullOfPageCache) {
  EXPECT_THAT(Diagnose(WithStalls(ATraining(), 0)
                           .Reading(Metric::kCgroupMemoryUsed, 16e9)
                           .Reading(Metric::kCgroupMemoryLimit, 16e9)),
              Not(Finds("host-memory")));
}

TEST(HostMemoryTest, StandsForTheWaitsForStorageThatItCauses) {
  const Diagnosis before = Diagnose(WaitingForALoader(20));
  ASSERT_THAT(before, FindsCause("input-bound", "storage"));
  const Diagnosis diagnosis = Diagnose(WithStalls(WaitingForALoader(20), 0.2));
  ASSERT_THAT(diagnosis, Finds("host-memory"));
  EXPECT_THAT(diagnosis, Not(Finds("input-bound")));
  EXPECT_EQ(FindingIn(diagnosis, "host-memory")->share, FindingIn(before, "input-bound")->share);
}

TEST(HostMemoryTest, LeavesALoaderThatComputesItsOwnFinding) {
  const Diagnosis diagnosis = Diagnose(WithStalls(WaitingForALoader(199), 0.2));
  EXPECT_THAT(diagnosis, Finds("host-memory"));
  EXPECT_THAT(diagnosis, Finds("input-bound"));
}

// A run that ended because a worker was killed.
ARun KilledBy(const char* signal, bool out_of_memory) {
  ARun run = ATraining()
                 .FedBy(MadeLoader(2, 100, 90, 20))
                 .Reading(Metric::kProcessMemory, 40e9, {{"role", "loader"}})
                 .InEachStep(Share::kHostOther, 100)
                 .EndedWith(1);
  run.rank().facts["worker_killed_by"] = "\"" + std::string(signal) + "\"";
  record::Recording recording = run;
  recording.stages.front().out_of_memory = out_of_memory;
  return ARun(std::move(recording));
}

TEST(HostMemoryTest, IsRaisedFirstWhereTheKernelKilledAWorkerForWantOfMemory) {
  const Diagnosis diagnosis = Diagnose(KilledBy("Killed", /*out_of_memory=*/true));
  ASSERT_EQ(diagnosis.findings.front().cause, "worker-killed");
  EXPECT_THAT(diagnosis.findings.front().title, ::testing::HasSubstr("its 2 workers held 40 GB together"));
}

TEST(HostMemoryTest, IsNotRaisedByAWorkerThatSomebodyKilled) {
  EXPECT_THAT(Diagnose(KilledBy("Killed", /*out_of_memory=*/false)), Not(Finds("host-memory")));
  EXPECT_THAT(Diagnose(KilledBy("Terminated", /*out_of_memory=*/true)), Not(Finds("host-memory")));
}

}  // namespace
}  // namespace fullbore::diagnose
