#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::Not;

// A training of 10 s, in which the GPU works.
ARun AWorkingTraining() {
  return ATraining().OnGpu(Metric::kGpuUtilization, 0.95).OnGpu(Metric::kGpuSmActive, 0.6);
}

TEST(HangTest, IsRaisedByAKernelThatSpinsSinceTheLastStep) {
  const Diagnosis diagnosis = Diagnose(
      AWorkingTraining().Then(Metric::kGpuUtilization, 1.0, 180).Then(Metric::kGpuSmActive, 0.001, 180));
  ASSERT_THAT(diagnosis, Finds("hang"));
  EXPECT_EQ(FindingIn(diagnosis, "hang")->severity, Severity::kCritical);
  EXPECT_THAT(FindingIn(diagnosis, "hang")->title, ::testing::HasSubstr("No step for 3 min"));
}

TEST(HangTest, IsNotRaisedBeforeTwoMinutes) {
  EXPECT_THAT(
      Diagnose(
          AWorkingTraining().Then(Metric::kGpuUtilization, 1.0, 110).Then(Metric::kGpuSmActive, 0.001, 110)),
      Not(Finds("hang")));
}

TEST(HangTest, IsNotRaisedByALongValidation) {
  EXPECT_THAT(
      Diagnose(
          AWorkingTraining().Then(Metric::kGpuUtilization, 1.0, 180).Then(Metric::kGpuSmActive, 0.5, 180)),
      Not(Finds("hang")));
}

TEST(HangTest, IsNotRaisedByAnIdleDevice) {
  EXPECT_THAT(
      Diagnose(
          AWorkingTraining().Then(Metric::kGpuUtilization, 0.0, 180).Then(Metric::kGpuSmActive, 0.0, 180)),
      Not(Finds("hang")));
}

// Without a device: a training of 10 s whose processes then use this part of a core.
ARun ThenUsingCores(double cores) {
  return ATraining()
      .Reading(Metric::kProcessCpu, 1.0, {{"role", "trainer"}})
      .Then(Metric::kProcessCpu, cores, 180);
}

TEST(HangTest, IsRaisedByARunInWhichNothingComputesAnyMore) {
  const Diagnosis diagnosis = Diagnose(ThenUsingCores(0.01));
  ASSERT_THAT(diagnosis, Finds("hang"));
  EXPECT_THAT(FindingIn(diagnosis, "hang")->title, ::testing::HasSubstr("waits for what does not come"));
  EXPECT_THAT(FindingIn(diagnosis, "hang")->fix[0], ::testing::HasSubstr("loader's workers"));
}

TEST(HangTest, ComesFirstWhateverWouldGainSomething) {
  ARun run = ThenUsingCores(0.01).InEachStep(record::Share::kDataWait, 100);
  const Diagnosis diagnosis = Diagnose(run.Then(Metric::kProcessCpu, 0.01, 180));
  EXPECT_THAT(diagnosis, Finds("input-bound"));
  EXPECT_EQ(diagnosis.findings.at(0).id, "hang");
}

TEST(HangTest, OfSeveralRanksOneIsMissing) {
  ARun run = ThenUsingCores(0.01);
  run.Beside(run);
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, Finds("hang"));
  EXPECT_THAT(FindingIn(diagnosis, "hang")->title, ::testing::HasSubstr("the ranks wait for one"));
}

TEST(HangTest, OfSeveralRanksNoneMayCompute) {
  ARun run = ThenUsingCores(0.06);
  EXPECT_THAT(Diagnose(run), Not(Finds("hang")));
  run.Beside(run).Reading(Metric::kProcessCpu, 1.0, {{"role", "trainer"}, {"rank", "0"}});
  run.Then(Metric::kProcessCpu, 0.06, 180);
  EXPECT_THAT(Diagnose(run), Finds("hang")) << "the figure of a rank is part of that of its role";
}

// A training of 10 s that then stands still for 3 min, in which a worker was seen in one fetch for so long.
ARun WithAWorkerInOneFetch(int64_t seconds, const char* activity = "lock") {
  ARun run = ThenUsingCores(0.01).FedBy(testing::MadeLoader(2, 100, 20, 10));
  const int64_t end_ns = run.rank().steps.back().end_ns + 178'000'000'000;
  run.rank().facts["unfinished_fetches"] =
      nlohmann::json::array({{{"pid", 671},
                              {"loader", 1},
                              {"begin_ns", end_ns - seconds * 1'000'000'000},
                              {"seen_ns", end_ns},
                              {"file", "/w/train.py"},
                              {"line", 24},
                              {"activity", activity},
                              {"samples", 10 * seconds}}})
          .dump();
  return run;
}

TEST(HangTest, NamesTheWorkerThatTheTrainingWaitsFor) {
  ARun run = WithAWorkerInOneFetch(175);
  run.rank().facts["threads_at_fork"] = R"json(["Thread-1 (validate)"])json";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, testing::FindsCause("hang", "worker"));
  const Finding& finding = *FindingIn(diagnosis, "hang");
  EXPECT_EQ(finding.title,
            "No step for 3 min 0 s, and nothing computes: a worker of its loader (process 671) has been in "
            "one fetch for 2 min 55 s; it waits for a lock at train.py:24.");
  EXPECT_THAT(finding.fix.front(), ::testing::HasSubstr("py-spy dump --native --pid 671"));
  EXPECT_THAT(finding, testing::Advises("Thread-1 (validate)"));
  EXPECT_THAT(finding, testing::Advises("DataLoader(timeout=120)"));
  EXPECT_EQ(finding.where.front().line, 24);
}

TEST(HangTest, NamesNoProcessToLookAtOnceTheCommandHasEnded) {
  const Diagnosis diagnosis = Diagnose(WithAWorkerInOneFetch(175).EndedWith(130));
  EXPECT_THAT(FindingIn(diagnosis, "hang")->fix.front(),
              ::testing::HasSubstr("it stays locked in the worker"));
  EXPECT_THAT(*FindingIn(diagnosis, "hang"), Not(testing::Advises("--pid 671")));
}

TEST(HangTest, DoesNotBlameAWorkerThatBeganLater) {
  EXPECT_EQ(FindingIn(Diagnose(WithAWorkerInOneFetch(40)), "hang")->cause, "");
}

TEST(HangTest, SpeaksOfAnInheritedLockOnlyWhereOneIsPossible) {
  const Diagnosis of_network = Diagnose(WithAWorkerInOneFetch(175, "network"));
  EXPECT_THAT(*FindingIn(of_network, "hang"), Not(testing::Advises("TOKENIZERS_PARALLELISM")));
  EXPECT_THAT(*FindingIn(of_network, "hang"), testing::Advises("give the request a time-out"));
  ARun spawned = WithAWorkerInOneFetch(175);
  spawned.rank().loaders.front().start_method = "spawn";
  EXPECT_THAT(*FindingIn(Diagnose(spawned), "hang"), Not(testing::Advises("TOKENIZERS_PARALLELISM")));
}

TEST(HangTest, AFactThatIsNoFetchIsPassedOver) {
  for (const char* fact : {"7", "[7, {}]", "{\"pid\": 1}", "[{\"pid\": \"x\", \"seen_ns\": -5}]", "[", ""}) {
    ARun run = ThenUsingCores(0.01);
    run.rank().facts["unfinished_fetches"] = fact;
    EXPECT_EQ(FindingIn(Diagnose(run), "hang")->cause, "") << fact;
  }
}

TEST(HangTest, OfAFileThatHoldsTooMuchOnlySomeIsNamed) {
  ARun run = WithAWorkerInOneFetch(175);
  nlohmann::json fetches = nlohmann::json::parse(run.rank().facts.at("unfinished_fetches"));
  nlohmann::json threads = nlohmann::json::array();
  for (int i = 0; i < 1000; ++i) {
    fetches.push_back(fetches.front());
    fetches.back()["line"] = 100 + i;
    fetches.back()["file"] = "/w/" + std::string(5000, 'f');
    threads.push_back("thread " + std::to_string(i) + std::string(5000, 't'));
  }
  fetches.front()["file"] = "/w/" + std::string(5000, 'f');
  run.rank().facts["unfinished_fetches"] = fetches.dump();
  run.rank().facts["threads_at_fork"] = threads.dump();
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, testing::FindsCause("hang", "worker"));
  const Finding& finding = *FindingIn(diagnosis, "hang");
  EXPECT_THAT(finding.title, ::testing::HasSubstr("at least 16 workers of its loader"));
  EXPECT_LT(finding.title.size(), 500);
  EXPECT_EQ(finding.where.size(), 16);
  EXPECT_THAT(finding, testing::Advises("thread 7t"));
  EXPECT_THAT(finding, Not(testing::Advises("thread 8t")));
  for (const std::string& fix : finding.fix) EXPECT_LT(fix.size(), 1200);
}

TEST(HangTest, IsNotRaisedWhereSomethingIsComputedOrTheCommandEndedWell) {
  EXPECT_THAT(Diagnose(ThenUsingCores(0.9)), Not(Finds("hang")));
  EXPECT_THAT(Diagnose(ThenUsingCores(0.01).EndedWith(0)), Not(Finds("hang")));
  EXPECT_THAT(Diagnose(ThenUsingCores(0.01).EndedWith(130)), Finds("hang"));
}

}  // namespace
}  // namespace fullbore::diagnose
