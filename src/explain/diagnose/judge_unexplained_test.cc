#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
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

TEST(UnexplainedTest, IsNotRaisedWhereEveryShareButComputationIsSmall) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kDataWait, 4)), Not(Finds("unexplained")));
}

TEST(UnexplainedTest, IsNotRaisedBesideAFindingThatExplains) {
  EXPECT_THAT(Diagnose(ATrace().InEachStep(Share::kCopyExposed, 20)), Not(Finds("unexplained")));
}

}  // namespace
}  // namespace fullbore::diagnose
