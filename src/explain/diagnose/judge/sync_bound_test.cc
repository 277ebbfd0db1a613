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

ARun WithCalls(const char* call, int64_t count, int64_t idle_ms) {
  ARun run = ATrace().InEachStep(Share::kSync, 20);
  run.rank().tables.emplace().syncs.push_back({call, "aten::mm", count, idle_ms * kMs, idle_ms * kMs});
  return run;
}

TEST(SyncBoundTest, AnAllocatorThatKeepsNothingIsNamedAndNotTheReadingOfValues) {
  const Diagnosis diagnosis = Diagnose(WithCalls("cudaFree", 8'000, 2'000));
  ASSERT_THAT(diagnosis, testing::FindsCause("sync-bound", "allocator"));
  const Finding& finding = *FindingIn(diagnosis, "sync-bound");
  EXPECT_THAT(finding.title, ::testing::HasSubstr("the caching allocator is off"));
  EXPECT_THAT(finding, testing::Advises("PYTORCH_NO_CUDA_MEMORY_CACHING"));
  EXPECT_THAT(finding, Not(testing::Advises(".item()")));
}

TEST(SyncBoundTest, AFewCallsThatFreeMemoryAreACacheThatMakesRoom) {
  const Diagnosis diagnosis = Diagnose(WithCalls("hipFree", 100, 2'000));
  ASSERT_THAT(diagnosis, testing::FindsCause("sync-bound", "allocator"));
  EXPECT_THAT(*FindingIn(diagnosis, "sync-bound"), Not(testing::Advises("PYTORCH_NO_CUDA_MEMORY_CACHING")));
  EXPECT_THAT(*FindingIn(diagnosis, "sync-bound"), testing::Advises("empty_cache"));
}

TEST(SyncBoundTest, AllocationsBesideReadsThatCostMoreAreNotTheCause) {
  ARun run = WithCalls("cudaMalloc", 5, 100);
  run.rank().tables->syncs.push_back({"cudaStreamSynchronize", "aten::item", 100, 1'900 * kMs, 1'900 * kMs});
  EXPECT_THAT(Diagnose(run), testing::FindsCause("sync-bound", ""));
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
