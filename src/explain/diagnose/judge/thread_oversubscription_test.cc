#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::HasSubstr;
using ::testing::Not;

const record::Labels kTrainers = {{"role", "trainer"}};

// Ranks beside each other whose pools have `threads` threads each, asked for by nobody.
ARun Ranks(int ranks, int threads) {
  const auto one = [&] {
    ARun run = ATraining();
    run.rank().facts["torch_threads"] = std::to_string(threads);
    return run;
  };
  ARun run = one();
  for (int i = 1; i < ranks; ++i) run.Beside(one());
  return run;
}

// `running` threads are on a core and `waiting` want one, on average.
ARun& Queueing(ARun& run, double running, double waiting) {
  return run.Reading(Metric::kCpuUtilization, 1.0)
      .Reading(Metric::kProcessCpu, running, kTrainers)
      .Reading(Metric::kProcessRunDelay, waiting, kTrainers);
}

Diagnosis FourRanksOnTwoCores(ARun run = Ranks(4, 2)) { return Diagnose(Queueing(run.OnCores(2), 1.9, 4.8)); }

TEST(ThreadOversubscriptionTest, IsRaisedByFourProcessesOfTwoThreadsOnTwoCores) {
  const Diagnosis diagnosis = FourRanksOnTwoCores();
  ASSERT_EQ(diagnosis.findings.front().id, "thread-oversubscription");
  const Finding& finding = diagnosis.findings.front();
  EXPECT_EQ(finding.change, "OMP_NUM_THREADS=1");
  EXPECT_THAT(finding, Advises("torch.set_num_threads(1)"));
  EXPECT_EQ(finding.title,
            "4 processes compute with 2 threads each on 2 cores: they wait for a core 72 % of the time.");
  EXPECT_GT(finding.speedup.low, 1);
}

TEST(ThreadOversubscriptionTest, IsRaisedByOneProcessThatAskedForMoreThreadsThanCores) {
  ARun run = Ranks(1, 8).OnCores(2);
  const Diagnosis diagnosis = Diagnose(Queueing(run, 1.8, 5));
  ASSERT_THAT(diagnosis, Finds("thread-oversubscription"));
  EXPECT_EQ(FindingIn(diagnosis, "thread-oversubscription")->change, "torch.set_num_threads(2)")
      << "nothing in the environment asked for 8, so the script did";
}

TEST(ThreadOversubscriptionTest, IsRaisedWhereAQuotaLeavesFewerCoresThanTheMachineHas) {
  ARun run = Ranks(1, 64).OnCores(64);
  record::Recording recording = run;
  recording.machine["cores"] = "8";
  const Diagnosis diagnosis = Diagnose(ARun(recording)
                                           .Reading(Metric::kProcessCpu, 7.9, kTrainers)
                                           .Reading(Metric::kProcessRunDelay, 0.2, kTrainers)
                                           .Reading(Metric::kCgroupCpuThrottled, 0.9));
  ASSERT_THAT(diagnosis, Finds("thread-oversubscription"));
  EXPECT_EQ(FindingIn(diagnosis, "thread-oversubscription")->change, "OMP_NUM_THREADS=8");
  EXPECT_THAT(FindingIn(diagnosis, "thread-oversubscription")->title, HasSubstr("quota"));
}

TEST(ThreadOversubscriptionTest, GivesEachProcessItsPartOfTheCores) {
  ARun run = Ranks(3, 8).OnCores(8);
  const Diagnosis diagnosis = Diagnose(Queueing(run, 7.9, 10));
  ASSERT_THAT(diagnosis, Finds("thread-oversubscription"));
  EXPECT_EQ(FindingIn(diagnosis, "thread-oversubscription")->change, "OMP_NUM_THREADS=2");
}

TEST(ThreadOversubscriptionTest, PromisesLessWhereIdleThreadsSleep) {
  ARun run = Ranks(4, 2);
  run.rank().facts["omp_wait_policy"] = "\"passive\"";
  const Diagnosis sleeping = FourRanksOnTwoCores(run), spinning = FourRanksOnTwoCores();
  EXPECT_LT(sleeping.findings.front().speedup.expected, spinning.findings.front().speedup.expected);
}

TEST(ThreadOversubscriptionTest, PredictsFromTheSpinningWhereItWasSampled) {
  ARun run = Ranks(4, 2);
  run.Reading(Metric::kProcessSpin, 0.9, kTrainers);
  const Finding finding = FourRanksOnTwoCores(run).findings.front();
  EXPECT_THAT(finding.title, HasSubstr("90 % of their CPU time is spinning"));
  EXPECT_NEAR(finding.speedup.low, 7.5, 0.1);
  EXPECT_NEAR(finding.speedup.expected, 20, 0.5);
}

TEST(ThreadOversubscriptionTest, PromisesLittleWhereSamplesShowHardlyAnySpinning) {
  ARun run = Ranks(4, 2);
  run.Reading(Metric::kProcessSpin, 0.02, kTrainers);
  EXPECT_LT(FourRanksOnTwoCores(run).findings.front().speedup.expected, 1.5);
}

TEST(ThreadOversubscriptionTest, PromisesNothingForOneProcessWithTwoThreadsPerCore) {
  ARun run = Ranks(1, 4).OnCores(2);
  const Diagnosis diagnosis = Diagnose(Queueing(run, 1.7, 1.3));
  ASSERT_THAT(diagnosis, Finds("thread-oversubscription"));
  const Finding& finding = *FindingIn(diagnosis, "thread-oversubscription");
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_EQ(finding.change, "") << "long operations lose by it";
  EXPECT_EQ(finding.speedup.expected, 1);
}

TEST(ThreadOversubscriptionTest, LeavesOtherProgramsTheirCores) {
  ARun run = Ranks(1, 12).OnCores(4);
  Queueing(run, 1.9, 9);
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, Finds("thread-oversubscription"));
  EXPECT_EQ(FindingIn(diagnosis, "thread-oversubscription")->change, "torch.set_num_threads(2)");
}

TEST(ThreadOversubscriptionTest, NamesTheOtherPoolsThatDoNotFit) {
  ARun run = Ranks(4, 2);
  run.rank().facts["opencv_threads"] = "2";
  run.rank().facts["mkl_num_threads"] = "\"2\"";
  const Diagnosis diagnosis = FourRanksOnTwoCores(run);
  EXPECT_THAT(diagnosis.findings.front(), Advises("cv2.setNumThreads(1)"));
  EXPECT_THAT(diagnosis.findings.front(), Advises("MKL_NUM_THREADS=1"));
}

TEST(ThreadOversubscriptionTest, IsNotRaisedByOneProcessWhoseThreadsFitBesideForeignLoad) {
  ARun run = Ranks(1, 2).OnCores(2);
  EXPECT_THAT(Diagnose(Queueing(run, 0.9, 1.1)), Not(Finds("thread-oversubscription")));
}

TEST(ThreadOversubscriptionTest, IsNotRaisedByMoreProcessesThanCoresWithAThreadEach) {
  ARun run = Ranks(4, 1).OnCores(2);
  EXPECT_THAT(Diagnose(Queueing(run, 1.9, 2)), Not(Finds("thread-oversubscription")))
      << "no number of threads mends that";
}

TEST(ThreadOversubscriptionTest, IsNotRaisedByThreadsThatAreAskedForButSleep) {
  ARun run = Ranks(1, 8).OnCores(2);
  EXPECT_THAT(Diagnose(Queueing(run, 1.3, 0.55)), Not(Finds("thread-oversubscription")))
      << "no more than two at a time want a core, and wait because of other programs";
}

TEST(ThreadOversubscriptionTest, IsNotRaisedWhereLoaderWorkersTakeTheCores) {
  ARun run = Ranks(1, 2).OnCores(2);
  Queueing(run, 0.7, 1.4).Reading(Metric::kProcessCpu, 1.2, {{"role", "loader"}});
  EXPECT_THAT(Diagnose(run), Not(Finds("thread-oversubscription")));
}

TEST(ThreadOversubscriptionTest, IsRaisedByAPoolThatSpinsBesideWorkersOnItsCores) {
  ARun run = ATraining().InEachStep(record::Share::kDataWait, 30).FedBy(testing::MadeLoader(3, 100, 200, 60));
  run.rank().facts["torch_threads"] = "2";
  Queueing(run.OnCores(2), 1.0, 0.85)
      .Reading(Metric::kProcessSpin, 0.7, kTrainers)
      .Reading(Metric::kProcessCpu, 0.9, {{"role", "loader"}})
      .Reading(Metric::kProcessRunDelay, 1.1, {{"role", "loader"}});
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, Finds("thread-oversubscription"));
  const Finding& finding = *FindingIn(diagnosis, "thread-oversubscription");
  EXPECT_THAT(finding.title, HasSubstr("beside loader workers that want the same cores"));
  EXPECT_EQ(finding.change, "OMP_NUM_THREADS=1");
  EXPECT_GT(finding.speedup.low, 1);
  EXPECT_LT(finding.speedup.expected, 2)
      << "60 ms of loading and 39 ms of training do not fit into less than 52";
}

TEST(ThreadOversubscriptionTest, IsRaisedByAPoolThatSpinsBesideAThreadOfItsOwnProcess) {
  ARun run = Ranks(1, 2).OnCores(2);
  Queueing(run, 1.9, 0.95).Reading(Metric::kProcessSpin, 0.48, kTrainers);
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, Finds("thread-oversubscription"));
  EXPECT_THAT(FindingIn(diagnosis, "thread-oversubscription")->title, HasSubstr("a thread of its own"));
}

TEST(ThreadOversubscriptionTest, IsSureOfLittleAmongOtherPrograms) {
  ARun run = Ranks(1, 2).OnCores(2);
  Queueing(run, 0.9, 1.1).Reading(Metric::kProcessSpin, 0.95, kTrainers);
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, Finds("thread-oversubscription"));
  EXPECT_LT(FindingIn(diagnosis, "thread-oversubscription")->speedup.low, 1.2);
}

TEST(ThreadOversubscriptionTest, AdvisesForNowWhatOnlyOtherProgramsMakeRight) {
  ARun run = Ranks(1, 2).OnCores(2);
  Queueing(run, 0.9, 1.1).Reading(Metric::kProcessSpin, 0.95, kTrainers);
  const Finding finding = *FindingIn(Diagnose(run), "thread-oversubscription");
  EXPECT_THAT(finding.fix.front(),
              HasSubstr("while other programs use 1.10 of 2 cores: set OMP_NUM_THREADS=1"));
  EXPECT_THAT(finding, Advises("alone again, take it back"));
}

TEST(ThreadOversubscriptionTest, AdvisesForNowWhereAThreadOfItsOwnWaitsForOtherPrograms) {
  ARun run = Ranks(1, 2).OnCores(2);
  Queueing(run, 1.05, 1.51).Reading(Metric::kProcessSpin, 0.42, kTrainers);  // 0.56 threads beside the pool
  EXPECT_THAT(*FindingIn(Diagnose(run), "thread-oversubscription"),
              Advises("while other programs use 0.95 of 2 cores"));
}

TEST(ThreadOversubscriptionTest, AdvisesForGoodWhatIsRightAlone) {
  ARun run = Ranks(1, 2).OnCores(2);
  Queueing(run, 1.9, 0.95).Reading(Metric::kProcessSpin, 0.48, kTrainers);  // beside a thread of its own
  EXPECT_THAT(*FindingIn(Diagnose(run), "thread-oversubscription"), Not(Advises("while other programs")));
  EXPECT_THAT(FourRanksOnTwoCores().findings.front(), Not(Advises("while other programs")));
}

TEST(ThreadOversubscriptionTest, IsNotRaisedByAPoolThatSpinsWithItsCoresToItself) {
  ARun run = Ranks(1, 2).OnCores(2);
  Queueing(run, 1.9, 0.05).Reading(Metric::kProcessSpin, 0.5, kTrainers);
  EXPECT_THAT(Diagnose(run), Not(Finds("thread-oversubscription")));
}

TEST(ThreadOversubscriptionTest, IsNotRaisedWhereTheWaitsWereNotRecorded) {
  ARun run = Ranks(4, 2).OnCores(2).Reading(Metric::kProcessCpu, 1.9, kTrainers);
  EXPECT_THAT(Diagnose(run), Not(Finds("thread-oversubscription")));
}

TEST(ThreadOversubscriptionTest, IsNotRaisedByTrainingsOneAfterTheOther) {
  ARun first = Ranks(1, 2);
  ARun second = Ranks(1, 2);
  for (record::Step& step : second.rank().steps) step.end_ns += 3'600'000'000'000;
  ARun run = first.Beside(second).OnCores(2);
  EXPECT_THAT(Diagnose(Queueing(run, 1.9, 4.8)), Not(Finds("thread-oversubscription")));
}

}  // namespace
}  // namespace fullbore::diagnose
