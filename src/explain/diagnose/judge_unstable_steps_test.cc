#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::HasSubstr;
using ::testing::Not;

// Four of a hundred steps take seven times as long, and spend it in `share`.
ARun WithSpikesIn(Share share) {
  return ATraining()
      .InStep(20, share, 600)
      .InStep(40, share, 600)
      .InStep(60, share, 600)
      .InStep(80, share, 600);
}

TEST(UnstableStepsTest, IsRaisedByStepsThatTakeSeveralTimesTheMedian) {
  const Diagnosis diagnosis = Diagnose(WithSpikesIn(Share::kForward));
  ASSERT_THAT(diagnosis, Finds("unstable-steps"));
  EXPECT_THAT(FindingIn(diagnosis, "unstable-steps")->title, HasSubstr("in forward"));
  EXPECT_EQ(FindingIn(diagnosis, "unstable-steps")->method, "") << "why they are slow is not known";
}

TEST(UnstableStepsTest, IsNotRaisedByOneSlowStepInAHundred) {
  EXPECT_THAT(Diagnose(ATraining().InStep(40, Share::kForward, 400)), Not(Finds("unstable-steps")));
}

TEST(UnstableStepsTest, IsNotRaisedByALoopThatWaitsForItsStepsNowAndThen) {
  EXPECT_THAT(Diagnose(WithSpikesIn(Share::kSync)), Not(Finds("unstable-steps")));
}

TEST(UnstableStepsTest, IsNotRaisedByStepsBelowTwiceTheMedian) {
  ARun run = ATraining();
  for (int64_t i = 1; i < 100; i += 10) run.InStep(i, Share::kForward, 95);
  EXPECT_THAT(Diagnose(run), Not(Finds("unstable-steps")));
}

}  // namespace
}  // namespace fullbore::diagnose
