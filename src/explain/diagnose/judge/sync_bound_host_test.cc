#include "explain/diagnose/judge/sync_bound_host.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::kMs;
using ::testing::Not;

// Steps of JAX: `launch` ms to call the step, then what the test adds.
ARun ATrainingWithJax(int64_t launch_ms = 2) {
  ARun run = ATraining();
  run.rank().facts["framework"] = "\"jax\"";
  for (record::Step& step : run.rank().steps) {
    step.share_ns = {};
    step.share_ns[Index(Share::kCompute)] = step.wall_ns = launch_ms * kMs;
  }
  return run.InEachStep(Share::kCompute, 0);
}

TEST(SyncSeenFromHostTest, IsRaisedWhereEachStepIsWaitedForBeforeTheNextIsPrepared) {
  const Diagnosis diagnosis =
      Diagnose(ATrainingWithJax().InEachStep(Share::kSync, 60).InEachStep(Share::kHostOther, 38));
  ASSERT_THAT(diagnosis, FindsCause("sync-bound", "each-step"));
  const Finding& finding = *FindingIn(diagnosis, "sync-bound");
  EXPECT_NEAR(finding.share, 0.40, 0.01);
  EXPECT_NEAR(finding.speedup.high, 1 / 0.6, 0.01);
  EXPECT_THAT(finding.title, HasSubstr("40 % of the time"));
  EXPECT_THAT(diagnosis, Not(Finds("host-other"))) << "which would pass while the device computes";
}

TEST(SyncSeenFromHostTest, WhatTheDeviceCannotHideIsStillFound) {
  const Diagnosis diagnosis =
      Diagnose(ATrainingWithJax().InEachStep(Share::kSync, 20).InEachStep(Share::kHostOther, 78));
  EXPECT_THAT(diagnosis, Finds("host-other"));
  EXPECT_NEAR(FindingIn(diagnosis, "sync-bound")->share, 0.20, 0.01);
}

TEST(SyncSeenFromHostTest, IsNotRaisedWhereTheHostDoesNothingElse) {
  const Diagnosis diagnosis = Diagnose(ATrainingWithJax(1).InEachStep(Share::kSync, 99));
  EXPECT_THAT(diagnosis, Not(Finds("sync-bound")));
  EXPECT_THAT(diagnosis, Finds("healthy")) << "the wait is for the computation";
}

TEST(SyncSeenFromHostTest, IsNotRaisedByAWaitInEveryTenthStep) {
  ARun run = ATrainingWithJax().InEachStep(Share::kHostOther, 10);
  for (int64_t step = 0; step < 100; step += 10) run.InStep(step, Share::kSync, 500);
  EXPECT_THAT(Diagnose(run), Not(Finds("sync-bound")));
}

TEST(SyncSeenFromHostTest, IsNotRaisedOfAFrameworkWhoseStepsMayNotRunAhead) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kSync, 60)), Not(Finds("sync-bound")));
}

}  // namespace
}  // namespace fullbore::diagnose
