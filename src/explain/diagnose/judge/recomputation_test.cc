#include <fmt/format.h>
#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::HasSubstr;
using ::testing::Not;

// A device of whose work so many percent were done for the second time.
ARun ComputingAgain(int64_t percent) {
  ARun run = ATrace();
  record::Noticed& noticed = run.rank().noticed;
  noticed.computed_ns = 1'000'000;
  noticed.recomputed_ns = 10'000 * percent;
  return run;
}

TEST(RecomputationTest, IsRaisedByATenthOfTheStepAndPromisesNothing) {
  const Diagnosis diagnosis = Diagnose(ComputingAgain(25));
  const Finding* finding = FindingIn(diagnosis, "recomputation");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->title, HasSubstr("25 % of the device's work"));
  EXPECT_DOUBLE_EQ(finding->share, 0.25);
  EXPECT_THAT(*finding, Advises("checkpoint fewer blocks, if memory is free"));
  EXPECT_EQ(finding->method, "") << "whether the activations fit is not known";
  EXPECT_EQ(diagnosis.findings.front().id, "healthy") << "it may be wanted";
}

TEST(RecomputationTest, CountsOnlyWhileTheDeviceComputes) {
  const Diagnosis diagnosis = Diagnose(ComputingAgain(25).InEachStep(Share::kDataWait, 100));
  EXPECT_DOUBLE_EQ(FindingIn(diagnosis, "recomputation")->share, 0.125);
}

TEST(RecomputationTest, IsNotRaisedByALittleOrByNone) {
  EXPECT_THAT(Diagnose(ComputingAgain(9)), Not(Finds("recomputation")));
  EXPECT_THAT(Diagnose(ATrace()), Not(Finds("recomputation")));
}

// Steps of 100 ms on a CPU, of which the passes take 90; so many percent of their operations are done again.
ARun OnACpu(int percent, double used_bytes) {
  ARun run = ATraining();
  for (record::Step& step : run.rank().steps) {
    step.share_ns = {};
    step.share_ns[Index(Share::kForward)] = 30'000'000;
    step.share_ns[Index(Share::kBackward)] = 60'000'000;
    step.share_ns[Index(Share::kOptimizer)] = 10'000'000;
  }
  run.rank().facts["flops"] =
      fmt::format(R"({{"step": 100, "again": {0}, "backward": 60, "unknown": []}})", percent);
  return run.Reading(Metric::kMemoryTotal, 16e9).Reading(Metric::kMemoryUsed, used_bytes);
}

TEST(RecomputationTest, OnACpuWithFreeMemoryItsOperationsAreTheGain) {
  const Diagnosis diagnosis = Diagnose(OnACpu(20, 4e9));
  const Finding* finding = FindingIn(diagnosis, "recomputation");
  ASSERT_NE(finding, nullptr);
  const double by_operations = 0.2 * 0.9, by_forward = 20.0 / (100 - 20 - 60) * 0.3;
  EXPECT_NEAR(finding->share, (by_operations + by_forward) / 2, 1e-9);
  EXPECT_NEAR(finding->speedup.expected, 1 / (1 - finding->share), 1e-9);
  EXPECT_LT(finding->speedup.low, 1 / (1 - by_operations));
  EXPECT_THAT(*finding, Advises("gradient_checkpointing=False"));
  EXPECT_EQ(finding->costs, replay::Cost::kMemory);
  EXPECT_EQ(diagnosis.findings.front().id, "recomputation");
}

TEST(RecomputationTest, OnACpuWhoseMemoryIsFullNothingIsPromised) {
  const Diagnosis diagnosis = Diagnose(OnACpu(20, 12e9));
  ASSERT_THAT(diagnosis, Finds("recomputation"));
  EXPECT_EQ(FindingIn(diagnosis, "recomputation")->method, "");
  EXPECT_EQ(diagnosis.findings.front().id, "healthy") << "it may be wanted";
}

TEST(RecomputationTest, InAContainerOfWhichTheMemoryIsNotKnownNothingIsPromised) {
  const Diagnosis diagnosis = Diagnose(OnACpu(20, 4e9).Reading(Metric::kCgroupMemoryLimit, 8e9));
  ASSERT_THAT(diagnosis, Finds("recomputation"));
  EXPECT_EQ(FindingIn(diagnosis, "recomputation")->method, "");
}

TEST(RecomputationTest, OperationsSayNothingOfADevice) {
  ARun run = OnACpu(20, 4e9);
  run.rank().device = "cuda:0";
  EXPECT_THAT(Diagnose(run), Not(Finds("recomputation")));
}

TEST(RecomputationTest, OnACpuALittleIsNotRaised) {
  EXPECT_THAT(Diagnose(OnACpu(7, 4e9)), Not(Finds("recomputation")));
}

}  // namespace
}  // namespace fullbore::diagnose
