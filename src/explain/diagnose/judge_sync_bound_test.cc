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
using testing::kMs;
using ::testing::Not;

TEST(SyncBoundTest, IsRaisedByADeviceThatIdlesBehindSynchronisations) {
  EXPECT_THAT(Diagnose(ATrace().InEachStep(Share::kSync, 5)), Finds("sync-bound"));
}

TEST(SyncBoundTest, IsNotRaisedBelowThreeInAHundred) {
  EXPECT_THAT(Diagnose(ATrace().InEachStep(Share::kSync, 2)), Not(Finds("sync-bound")));
}

TEST(SyncBoundTest, IsNotRaisedByAThreadThatWaitsForABusyDevice) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kSync, 30)), Not(Finds("sync-bound")));
}

TEST(SyncBoundTest, TheWorstCallSitesAreNamed) {
  ARun run = ATrace().InEachStep(Share::kSync, 20);
  auto& syncs = run.rank().tables.emplace().syncs;
  for (const char* where : {"train.py(81)", "train.py(82)", "train.py(83)", "train.py(84)"})
    syncs.push_back({"cudaStreamSynchronize", where, 5, 9 * kMs, 20 * kMs});
  const Diagnosis diagnosis = Diagnose(run);
  const auto& evidence = FindingIn(diagnosis, "sync-bound")->evidence;
  ASSERT_EQ(evidence.size(), 4u) << "the share and three sites";
  EXPECT_THAT(evidence[1].what, ::testing::HasSubstr("train.py(81)"));
}

}  // namespace
}  // namespace fullbore::diagnose
