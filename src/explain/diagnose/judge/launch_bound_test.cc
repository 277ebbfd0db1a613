#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using record::Share;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::Not;

TEST(LaunchBoundTest, IsRaisedByADeviceThatWaitsForLaunches) {
  EXPECT_THAT(Diagnose(ATrace().InEachStep(Share::kLaunch, 20)), FindsCause("launch-bound", ""));
}

TEST(LaunchBoundTest, IsNotRaisedByATwentiethOfTheStep) {
  EXPECT_THAT(Diagnose(ATrace().InEachStep(Share::kLaunch, 5)), Not(Finds("launch-bound")));
}

TEST(LaunchBoundTest, ShortKernelsAndGapsBetweenQueuedOnesAreNamed) {
  ARun run = ATrace().InEachStep(Share::kLaunch, 20);
  run.rank().kernels = 10'000'000;
  EXPECT_THAT(Diagnose(run), FindsCause("launch-bound", "small-kernels"));
  EXPECT_THAT(Diagnose(ATrace().InEachStep(Share::kGap, 20)), FindsCause("launch-bound", "gaps"));
}

TEST(LaunchBoundTest, IsRaisedInOneWindowAsAWarning) {
  ARun run = ATrace(1).InEachStep(Share::kLaunch, 400);
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, Finds("launch-bound"));
  EXPECT_EQ(FindingIn(diagnosis, "launch-bound")->severity, Severity::kWarning);
  EXPECT_TRUE(FindingIn(diagnosis, "launch-bound")->evidence[0].begin_ns.has_value());
}

TEST(LaunchBoundTest, IsRaisedByAnIdleGpuWhileTheTrainingThreadWorks) {
  EXPECT_THAT(Diagnose(ATraining().OnGpu(Metric::kGpuUtilization, 0.4)), Finds("launch-bound"));
}

TEST(LaunchBoundTest, TheOptimizerIsFusedUnderItsOwnNameOrNotAtAll) {
  ARun run = ATraining().OnGpu(Metric::kGpuUtilization, 0.4);
  const auto advises = [&](const char* optimizer, const char* words) {
    run.rank().facts["optimizer"] = optimizer;
    return ::testing::Matches(testing::Advises(words))(*FindingIn(Diagnose(run), "launch-bound"));
  };
  EXPECT_TRUE(advises("\"SGD\"", "torch.optim.SGD(..., fused=True)"));
  EXPECT_FALSE(advises("\"SGD\"", "Adam"));
  EXPECT_FALSE(advises("\"Lion\"", "fused"));
}

TEST(LaunchBoundTest, KerasIsNotToldToCompileWithTorch) {
  ARun run = ATraining().OnGpu(Metric::kGpuUtilization, 0.4);
  run.rank().facts["framework"] = "\"keras\"";
  EXPECT_THAT(*FindingIn(Diagnose(run), "launch-bound"), Not(testing::Advises("torch")));
  EXPECT_THAT(*FindingIn(Diagnose(run), "launch-bound"), testing::Advises("jit_compile=True"));
}

TEST(LaunchBoundTest, IsNotRaisedWhereTheGpuIdlesForWantOfData) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kDataWait, 150).OnGpu(Metric::kGpuUtilization, 0.39)),
              Not(Finds("launch-bound")));
}

}  // namespace
}  // namespace fullbore::diagnose
