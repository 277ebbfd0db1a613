#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::Finds;
using testing::kMs;
using testing::LeavesOpen;
using ::testing::Not;

TEST(CommBoundTest, IsRaisedByRanksThatAllWait) {
  const Diagnosis diagnosis = Diagnose(ATraining()
                                           .InEachStep(Share::kCommExposed, 50)
                                           .Beside(ATraining().InEachStep(Share::kCommExposed, 50)));
  EXPECT_THAT(diagnosis, Finds("comm-bound"));
  EXPECT_THAT(diagnosis, Not(Finds("straggler")));
}

TEST(CommBoundTest, IsNotRaisedBelowATenthOfTheStep) {
  EXPECT_THAT(Diagnose(ATraining()
                           .InEachStep(Share::kCommExposed, 10)
                           .Beside(ATraining().InEachStep(Share::kCommExposed, 10))),
              Not(Finds("comm-bound")));
}

TEST(CommBoundTest, IsRaisedByTheTraceOfOneRankOfSeveral) {
  ARun run = ATrace().InEachStep(Share::kCommExposed, 30);
  run.rank().comm_ns = 3'000 * kMs;
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_THAT(diagnosis, Finds("comm-bound"));
  EXPECT_THAT(diagnosis, LeavesOpen("stragglers"));
}

TEST(CommBoundTest, GivesWayToAStragglerWhereWaitingCannotBeToldFromTransfer) {
  const Diagnosis diagnosis = Diagnose(
      ATraining().InEachStep(Share::kCommExposed, 50).Beside(ATraining().InEachStep(Share::kForward, 50)));
  EXPECT_THAT(diagnosis, Finds("straggler"));
  EXPECT_THAT(diagnosis, Not(Finds("comm-bound")));
}

}  // namespace
}  // namespace fullbore::diagnose
