#include <gtest/gtest.h>

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

TEST(HangTest, IsNotRaisedWhereSomethingIsComputedOrTheCommandEndedWell) {
  EXPECT_THAT(Diagnose(ThenUsingCores(0.9)), Not(Finds("hang")));
  EXPECT_THAT(Diagnose(ThenUsingCores(0.01).EndedWith(0)), Not(Finds("hang")));
  EXPECT_THAT(Diagnose(ThenUsingCores(0.01).EndedWith(130)), Finds("hang"));
}

}  // namespace
}  // namespace fullbore::diagnose
