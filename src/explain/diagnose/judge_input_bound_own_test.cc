#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Activity;
using record::HostOther;
using record::Metric;
using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::LeavesOpen;
using ::testing::Not;

record::HotLine Fed(Activity activity, int64_t samples, bool in_iterator) {
  return {Share::kDataWait, "/home/u/train.py",  31,       "main",      "batch = batches.get()",
          samples,          HostOther::kUnnamed, activity, in_iterator, ""};
}

// 43 % of the time waiting, on 4 cores of which `busy` are in use.
ARun ATrainingThatWaits(record::HotLine line, double busy = 1.2) {
  ARun run = ATraining()
                 .InEachStep(Share::kDataWait, 75)
                 .OnCores(4)
                 .Reading(Metric::kProcessCpu, busy, {{"role", "trainer"}});
  for (record::Step& step : run.rank().steps) step.batches = 0;
  run.rank().hot_lines = {std::move(line)};
  return run;
}

TEST(OwnFeedTest, AQueueThatRunsDryIsWaitingForData) {
  const Diagnosis diagnosis = Diagnose(ATrainingThatWaits(Fed(Activity::kQueue, 400, false)));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "own-loader"));
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  EXPECT_THAT(finding.title, HasSubstr("train.py:31"));
  EXPECT_THAT(finding.title, HasSubstr("delivers for 5.71 steps/s, the training could take 10"));
  EXPECT_THAT(finding, Advises("more producers"));
  EXPECT_THAT(diagnosis, LeavesOpen("own loader"));
  EXPECT_NEAR(finding.speedup.expected, 1.75, 0.01) << "a second producer ends the wait";
  EXPECT_NEAR(finding.speedup.high, 1.75, 0.01);
  EXPECT_GT(finding.speedup.low, 1.2);
}

TEST(OwnFeedTest, ASecondProducerHalvesALongWaitButDoesNotEndIt) {
  const Diagnosis diagnosis = Diagnose(
      ATrainingThatWaits(Fed(Activity::kQueue, 400, false)).InEachStep(Share::kDataWait, 225));  // 75 %
  EXPECT_NEAR(FindingIn(diagnosis, "input-bound")->speedup.expected, 2, 0.01);
  EXPECT_NEAR(FindingIn(diagnosis, "input-bound")->speedup.high, 4 / 1.2, 0.01)
      << "1.2 of 4 cores are in use";
}

TEST(OwnFeedTest, AGeneratorThatPreparesDataIsWaitingForData) {
  const Diagnosis diagnosis = Diagnose(ATrainingThatWaits(Fed(Activity::kUnknown, 400, true)));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "own-iterator"));
  EXPECT_THAT(FindingIn(diagnosis, "input-bound")->title, HasSubstr("prepares every batch itself"));
  EXPECT_THAT(*FindingIn(diagnosis, "input-bound"), Advises("DataLoader(num_workers=...)"));
}

TEST(OwnFeedTest, WhereNoCoreIsIdleNothingIsPromised) {
  const Diagnosis diagnosis = Diagnose(ATrainingThatWaits(Fed(Activity::kQueue, 400, false), 3.9));
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  EXPECT_EQ(finding.speedup.high, 1);
  EXPECT_TRUE(finding.method.empty());
  EXPECT_THAT(finding.fix.front(), HasSubstr("no core is idle"));
}

TEST(OwnFeedTest, AnIteratorThatIsBlockedNeedsNoCore) {
  const Diagnosis diagnosis = Diagnose(ATrainingThatWaits(Fed(Activity::kNetwork, 400, true), 3.9));
  EXPECT_GT(FindingIn(diagnosis, "input-bound")->speedup.expected, 1.5);
}

TEST(OwnFeedTest, TheLibraryThatRunsTheLoopIsNamedWithItsOption) {
  record::HotLine line = Fed(Activity::kQueue, 400, false);
  line.library = "ultralytics";
  EXPECT_THAT(*FindingIn(Diagnose(ATrainingThatWaits(line)), "input-bound"),
              Advises("ultralytics runs this loop: workers="));
}

TEST(OwnFeedTest, WithoutSuchSamplesTheWaitAloneIsReported) {
  EXPECT_THAT(Diagnose(ATrainingThatWaits(Fed(Activity::kUnknown, 400, false))),
              FindsCause("input-bound", ""));
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kHostOther, 75)), Not(Finds("input-bound")));
}

}  // namespace
}  // namespace fullbore::diagnose
