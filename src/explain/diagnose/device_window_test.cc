#include "explain/diagnose/device_window.h"

#include <gtest/gtest.h>

#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::kMs;
using testing::LeavesOpen;
using ::testing::Not;

constexpr int64_t kFirstStep = 32;

Diagnosis With(const ARun& trace, const ARun& run) {
  Diagnosis diagnosis = Diagnose(run);
  AddDeviceWindow({0, kFirstStep, 4, ""}, trace, {}, diagnosis);
  return diagnosis;
}

ARun OnAGpu() { return ATraining().OnGpu(record::Metric::kGpuUtilization, 0.99); }

TEST(DeviceWindowTest, WhatTheDeviceSaysIsFoundInARunThatKnewOnlyItsUtilisation) {
  ASSERT_THAT(Diagnose(OnAGpu()), Not(Finds("copy-bound")));

  const Diagnosis diagnosis = With(ATrace().InEachStep(Share::kCopyExposed, 20), OnAGpu());

  EXPECT_THAT(diagnosis, Finds("copy-bound"));
  EXPECT_THAT(diagnosis, Not(Finds("healthy")));
}

TEST(DeviceWindowTest, WhatTheRunItselfFoundStays) {
  const Diagnosis diagnosis = With(ATrace(), OnAGpu().InEachStep(Share::kDataWait, 100));

  EXPECT_THAT(diagnosis, Finds("input-bound"));
}

TEST(DeviceWindowTest, WaitsForDataInsideTheWindowAreNotTheRuns) {
  const Diagnosis diagnosis = With(ATrace().InEachStep(Share::kDataWait, 100), OnAGpu());

  EXPECT_THAT(diagnosis, Not(Finds("input-bound")));
}

TEST(DeviceWindowTest, WhatTheHostGuessedOfTheDeviceGivesWay) {
  ASSERT_THAT(Diagnose(OnAGpu().InEachStep(Share::kH2d, 30)), Finds("copy-bound"));

  EXPECT_THAT(With(ATrace(), OnAGpu().InEachStep(Share::kH2d, 30)), Not(Finds("copy-bound")));
}

TEST(DeviceWindowTest, WhatIsComputedAgainIsSeenInTheWindow) {
  ARun trace = ATrace();
  trace.rank().noticed.computed_ns = 100;
  trace.rank().noticed.recomputed_ns = 25;
  const Diagnosis diagnosis = With(trace, OnAGpu());
  EXPECT_EQ(diagnosis.recomputed, 0.25);
  EXPECT_THAT(diagnosis, Finds("recomputation"));
}

TEST(DeviceWindowTest, WhatTheProfilerCostIsLeftOut) {
  ARun launches = ATrace().InEachStep(Share::kLaunch, 40);
  launches.rank().kernels = 10'000;
  const Diagnosis slowed = With(launches, OnAGpu());
  ASSERT_FALSE(slowed.fitness.conditions.empty());
  EXPECT_EQ(slowed.fitness.conditions.back().id, "recorder-cost") << "140 ms with it, 100 ms without";
  EXPECT_DOUBLE_EQ(slowed.device_window->mean_step_ns, 140 * kMs) << "as it was recorded";
  EXPECT_THAT(slowed, Not(Finds("launch-bound"))) << "all of it";

  const Diagnosis in_part = With(launches, OnAGpu().InEachStep(Share::kForward, 20));
  EXPECT_NEAR(FindingIn(in_part, "launch-bound")->share, 20 / 120.0, 1e-6);

  const Diagnosis not_slowed = With(launches, OnAGpu().InEachStep(Share::kForward, 40));
  EXPECT_TRUE(not_slowed.fitness.conditions.empty());
  EXPECT_NEAR(FindingIn(not_slowed, "launch-bound")->share, 40 / 140.0, 1e-6);
}

TEST(DeviceWindowTest, TheLoopsOwnCodeCostsNothingWhereTheDeviceIsBusyMeanwhile) {
  const ARun run = OnAGpu().InEachStep(Share::kHostOther, 20);
  ASSERT_EQ(FindingIn(Diagnose(run), "host-other")->cause, "loop-code");
  EXPECT_THAT(With(ATrace().InEachStep(Share::kCompute, 20), run), Not(Finds("host-other")));
  EXPECT_THAT(With(ATrace().InEachStep(Share::kHostOther, 20), run), Finds("host-other"));
}

TEST(DeviceWindowTest, AWindowThatCannotBeJudgedLeavesTheDeviceOpen) {
  ARun window = ATrace(1);
  window.rank().kernels = 4;
  const Diagnosis diagnosis = With(window, OnAGpu());
  EXPECT_THAT(diagnosis, LeavesOpen("under the profiler"));
  EXPECT_FALSE(diagnosis.device_window.has_value());
}

TEST(DeviceWindowTest, AHealthyRunStaysHealthyIfItsDeviceIs) {
  EXPECT_THAT(With(ATrace(), OnAGpu()), Finds("healthy"));
}

TEST(DeviceWindowTest, NothingIsLeftOpenForWantOfARecordOfTheDevice) {
  ASSERT_THAT(Diagnose(OnAGpu()), LeavesOpen(kDeviceNotSeen));

  EXPECT_THAT(With(ATrace(), OnAGpu()), Not(LeavesOpen(kDeviceNotSeen)));
}

TEST(DeviceWindowTest, OnACpuTheOperatorsAreNamedAndNothingElseChanges) {
  ARun trace = ATraining(10);
  trace.rank().operators = {{"aten::linear", 20, 600 * kMs, 3e9},
                            {"aten::relu", 10, 100 * kMs, std::nullopt}};

  const Diagnosis diagnosis = With(trace, ATraining());

  ASSERT_TRUE(diagnosis.device_window);
  EXPECT_EQ(diagnosis.device_window->first_step, kFirstStep);
  EXPECT_FALSE(diagnosis.device_window->device);
  ASSERT_EQ(diagnosis.device_window->operators.size(), 2U);
  const auto& linear = diagnosis.device_window->operators[0];
  EXPECT_EQ(linear.name, "aten::linear");
  EXPECT_DOUBLE_EQ(*linear.flops_per_s, 5e9);
  EXPECT_EQ(testing::IdsIn(diagnosis), testing::IdsIn(Diagnose(ATraining())));
}

TEST(DeviceWindowTest, AWindowWithoutStepsSaysNothing) {
  ARun trace = ATraining(1);
  trace.rank().steps.clear();

  EXPECT_FALSE(With(trace, ATraining()).device_window);
}

}  // namespace
}  // namespace fullbore::diagnose
