#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::ARun;
using testing::ATraining;
using testing::Finds;
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

TEST(CpuContentionTest, IsNotRaisedWhileACoreIsLeft) {
  EXPECT_THAT(Diagnose(ATraining()
                           .OnCores(2)
                           .Reading(Metric::kCpuUtilization, 0.85)
                           .Reading(Metric::kProcessCpu, 0.5, {{"role", "trainer"}})),
              Not(Finds("cpu-contention")));
}

}  // namespace
}  // namespace fullbore::diagnose
