#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(UnexplainedTest, IsRaisedByOneStepThatMostlyWaits) {
  const Diagnosis diagnosis = Diagnose(ATrace(1).InEachStep(Share::kHostOther, 130));
  EXPECT_THAT(diagnosis, Finds("unexplained"));
  EXPECT_THAT(diagnosis, Not(Finds("healthy")));
}

TEST(UnexplainedTest, IsRaisedByACauseTooSmallForAFindingWhichIsNamed) {
  const Diagnosis diagnosis = Diagnose(ATraining().InEachStep(Share::kCommExposed, 9));
  ASSERT_THAT(diagnosis, FindsCause("unexplained", ""));
  EXPECT_THAT(FindingIn(diagnosis, "unexplained")->evidence.at(0).what, HasSubstr("collectives"));
}

TEST(UnexplainedTest, IsNotRaisedByOneStepThatIsAllComputation) {
  const Diagnosis diagnosis = Diagnose(ATrace(1));
  EXPECT_THAT(diagnosis, Not(Finds("unexplained")));
  EXPECT_THAT(diagnosis, Not(Finds("healthy"))) << "one step is too few";
}

TEST(UnexplainedTest, OfASampledProcessAsksForLongerSamplingNotForSteps) {
  ARun run = ATraining(30).InEachStep(Share::kCommExposed, 9);
  run.rank().facts["sampled"] = R"({"samples": 90, "points": 0.05})";
  const Finding finding = *FindingIn(Diagnose(run), "unexplained");
  EXPECT_EQ(finding.cause, "");
  EXPECT_THAT(finding, Advises("sample it for longer"));
  EXPECT_THAT(finding, Not(Advises("more steps")));
}

TEST(UnexplainedTest, IsNotRaisedWhereEveryShareButComputationIsSmall) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kDataWait, 4)), Not(Finds("unexplained")));
}

TEST(UnexplainedTest, AWaitForADeviceThatIsBusyIsComputation) {
  const ARun run = ATraining().InEachStep(Share::kSync, 80).OnGpu(record::Metric::kGpuUtilization, 0.97);
  EXPECT_THAT(Diagnose(run), Not(Finds("unexplained")));
}

TEST(UnexplainedTest, AWaitForNobodyKnowsWhatIsNot) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kSync, 80)), Finds("unexplained"));
}

TEST(UnexplainedTest, IsNotRaisedBesideAFindingThatExplains) {
  EXPECT_THAT(Diagnose(ATrace().InEachStep(Share::kCopyExposed, 20)), Not(Finds("unexplained")));
}

}  // namespace
}  // namespace fullbore::diagnose
