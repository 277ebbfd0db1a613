#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::Not;

TEST(HostOtherTest, IsRaisedByCodeBesideTrainingAndNamesItsLine) {
  ARun run = ATraining().InEachStep(Share::kHostOther, 50);
  run.rank().hot_lines.push_back({Share::kHostOther, "/home/u/train.py", 70, "main", "log(metrics)", 9});
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("host-other", "loop-code"));
  EXPECT_NEAR(FindingIn(diagnosis, "host-other")->share, 1.0 / 3, 1e-9);
  EXPECT_THAT(FindingIn(diagnosis, "host-other")->title, ::testing::HasSubstr("train.py:70"));
}

TEST(HostOtherTest, IsNotRaisedBelowATwentieth) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kHostOther, 5)), Not(Finds("host-other")));
}

TEST(HostOtherTest, WhatTheLoopDoesIsNamedWhereItWasSeen) {
  using record::HostOther;
  for (const auto& [part, cause] :
       {std::pair(HostOther::kCheckpoint, "checkpoint"), std::pair(HostOther::kValidation, "validation"),
        std::pair(HostOther::kGarbageCollection, "garbage-collection")}) {
    EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kHostOther, 50).OfWhichEachStep(part, 45)),
                FindsCause("host-other", cause));
  }
}

TEST(HostOtherTest, WhereDeviceAndCpuIdleTheCodeIsSerial) {
  const Diagnosis diagnosis = Diagnose(ATraining()
                                           .InEachStep(Share::kHostOther, 300)
                                           .OnGpu(Metric::kGpuUtilization, 0.15)
                                           .Reading(Metric::kCpuUtilization, 0.13));
  EXPECT_THAT(*FindingIn(diagnosis, "host-other"), Advises("parallelise"));
}

}  // namespace
}  // namespace fullbore::diagnose
