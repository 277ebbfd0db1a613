#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::kMs;
using testing::MadeLoader;
using ::testing::Not;

TEST(WorkerOvercommitTest, IsRaisedByTwentyWorkersForALightLoad) {
  const Diagnosis diagnosis = Diagnose(ATraining().FedBy(MadeLoader(20, 100, 30, 29)));
  ASSERT_THAT(diagnosis, Finds("worker-overcommit"));
  EXPECT_EQ(FindingIn(diagnosis, "worker-overcommit")->change, "DataLoader(num_workers=1)");
}

TEST(WorkerOvercommitTest, IsNotRaisedByOneWorkerMoreThanNeeded) {
  EXPECT_THAT(Diagnose(ATraining().FedBy(MadeLoader(2, 100, 30, 29))), Not(Finds("worker-overcommit")));
}

TEST(WorkerOvercommitTest, IsNotRaisedWhereAllWorkersAreNeeded) {
  EXPECT_THAT(Diagnose(ATraining().FedBy(MadeLoader(6, 100, 500, 490))), Not(Finds("worker-overcommit")));
}

TEST(WorkerOvercommitTest, StandsForTheWaitsWhileTheyStartAtEachEpoch) {
  record::Loader loader = MadeLoader(20, 100, 30, 29);
  loader.restarts = 9;
  ARun run = ATraining();
  for (int64_t i = 5; i < 95; i += 10) run.InStep(i, Share::kDataWait, 300);
  loader.restart_wait_ns = 9 * 300 * kMs;
  const Diagnosis diagnosis = Diagnose(run.FedBy(loader));
  EXPECT_THAT(diagnosis, Finds("worker-overcommit"));
  EXPECT_THAT(diagnosis, Not(Finds("input-bound")));
}

}  // namespace
}  // namespace fullbore::diagnose
