#include <gtest/gtest.h>

#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::ACommandWithoutTraining;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::HasSubstr;
using testing::kMs;
using testing::LeavesOpen;
using ::testing::Not;

TEST(HealthyTest, IsRaisedWhereNothingCostsMuch) {
  const Diagnosis diagnosis = Diagnose(ATraining().InEachStep(Share::kDataWait, 4));
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_THAT(diagnosis, Finds("healthy"));
}

TEST(HealthyTest, IsNotRaisedBesideAWarning) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kDataWait, 8)), Not(Finds("healthy")));
}

TEST(HealthyTest, IsNotRaisedWithoutTraining) {
  EXPECT_THAT(Diagnose(ACommandWithoutTraining(60)), Not(Finds("healthy")));
}

TEST(HealthyTest, SaysHowNearTheDeviceIsToItsLimit) {
  ARun run = ATrace();
  record::Roofline roofline;
  roofline.steps.emplace();
  roofline.steps->steps = 100;
  roofline.steps->device_ns = 10'000 * kMs;
  roofline.steps->floor_ns = 6'000.0 * kMs;
  roofline.steps->judged_ns = 9'500 * kMs;
  run.rank().roofline = roofline;
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_THAT(
      FindingIn(diagnosis, "healthy")->title,
      HasSubstr(
          "100 % of the time at 60 % of what it could do: at its limit, its work of a step would take 60"));
}

TEST(HealthyTest, SaysNothingOfTheDevicesLimitWhereTheWorkIsNotKnown) {
  ARun run = ATrace();
  record::Roofline roofline;
  roofline.steps.emplace();
  roofline.steps->steps = 100;
  roofline.steps->device_ns = 10'000 * kMs;
  roofline.steps->judged_ns = 100 * kMs;
  roofline.steps->floor_ns = 9'900.0 * kMs;
  run.rank().roofline = roofline;
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_THAT(FindingIn(diagnosis, "healthy")->title, Not(HasSubstr("of what it could do")));
}

// Three steps of 100 ms under the profiler, nothing needless among them.
ARun ATrainingLookedAt() {
  ARun run = ATraining();
  run.rank().device = "cpu";
  run.rank().operators = {{"aten::mm", 30, 120 * kMs, {}}};
  run.rank().host_work.emplace();
  run.rank().host_work->steps = 3;
  run.rank().host_work->stepped_ns = 300 * kMs;
  return run;
}

TEST(HealthyTest, NamesTheOperatorThatTakesMostOfTheTimeOnACpu) {
  EXPECT_THAT(FindingIn(Diagnose(ATrainingLookedAt()), "healthy")->title,
              HasSubstr("narrowest pipe, most of all aten::mm (40 % of the step)"));
}

TEST(HealthyTest, OperatorsThatNobodyLookedAtAreLeftOpen) {
  ARun run = ATraining();
  run.rank().device = "cpu";
  EXPECT_THAT(Diagnose(run), LeavesOpen("operators on the CPU"));
  EXPECT_THAT(Diagnose(ATrainingLookedAt()), Not(LeavesOpen("operators on the CPU")));
  EXPECT_THAT(Diagnose(ATraining().OnGpu(record::Metric::kGpuUtilization, 0.99)),
              Not(LeavesOpen("operators on the CPU")));
  EXPECT_THAT(Diagnose(run.InEachStep(Share::kDataWait, 50)), Not(LeavesOpen("operators on the CPU")));
}

TEST(HealthyTest, WhatOthersDoCostsWhereGivingWayToThemIsSureToGain) {
  Diagnosis diagnosis;
  Finding& finding = diagnosis.findings.emplace_back();
  finding.of_others = true;
  finding.severity = Severity::kCritical;
  finding.share = 0.5;
  EXPECT_TRUE(NothingCostsMuch(diagnosis));
  finding.speedup = {4, 1.05, 10};
  EXPECT_FALSE(NothingCostsMuch(diagnosis));
}

}  // namespace
}  // namespace fullbore::diagnose
