#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::HasSubstr;
using ::testing::Not;

// Two cores that are always busy, `own` of them with the run itself.
ARun OnABusyMachine(double own) {
  return ATraining()
      .OnCores(2)
      .Reading(Metric::kCpuUtilization, 1.0)
      .Reading(Metric::kProcessCpu, own, {{"role", "trainer"}});
}

TEST(CpuContentionTest, IsRaisedByOtherProgramsAndIsNotTheRunsOwnIllness) {
  const Diagnosis diagnosis = Diagnose(OnABusyMachine(0.5));
  EXPECT_THAT(diagnosis, Finds("cpu-contention"));
  EXPECT_EQ(diagnosis.findings.at(0).id, "healthy");
}

TEST(CpuContentionTest, IsNotRaisedByARunThatKeepsTheCoresBusyItself) {
  EXPECT_THAT(Diagnose(OnABusyMachine(1.6)), Not(Finds("cpu-contention")));
}

TEST(CpuContentionTest, OthersKeepNoMoreOfTheRunsCoresBusyThanItLeaves) {
  ARun run = OnABusyMachine(0.3);
  record::Recording of_one_core = run;
  of_one_core.machine["cores"] = "1";  // of the two of the machine
  EXPECT_THAT(FindingIn(Diagnose(of_one_core), "cpu-contention")->title,
              HasSubstr("Other programs keep 0.70 of 1 cores busy"));
  EXPECT_THAT(FindingIn(Diagnose(run), "cpu-contention")->title, HasSubstr("1.70 of 2 cores"));
}

TEST(CpuContentionTest, IsNotRaisedWhileACoreIsLeft) {
  EXPECT_THAT(Diagnose(ATraining()
                           .OnCores(2)
                           .Reading(Metric::kCpuUtilization, 0.85)
                           .Reading(Metric::kProcessCpu, 0.5, {{"role", "trainer"}})),
              Not(Finds("cpu-contention")));
}

}  // namespace
}  // namespace fullbore::diagnose
