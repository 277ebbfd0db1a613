#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"
#include "explain/replay/pipeline.h"

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
  EXPECT_NEAR(finding.speedup.expected, 1.75, 0.03) << "a second producer ends the wait";
  EXPECT_GT(finding.speedup.low, 1.2);
}

TEST(OwnFeedTest, ASecondProducerHalvesALongWaitButDoesNotEndIt) {
  const Diagnosis diagnosis = Diagnose(
      ATrainingThatWaits(Fed(Activity::kQueue, 400, false)).InEachStep(Share::kDataWait, 225));  // 75 %
  EXPECT_NEAR(FindingIn(diagnosis, "input-bound")->speedup.expected, 2, 0.03);
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

TEST(OwnFeedTest, WhereThePoolKeepsTheCoresItGivesThemToWorkers) {
  ARun run = ATrainingThatWaits(Fed(Activity::kUnknown, 400, true), 1.4).OnCores(2);
  run.rank().facts["torch_threads"] = "2";
  run.Reading(Metric::kProcessSpin, 0.2, {{"role", "trainer"}}).Reading(Metric::kCpuUtilization, 0.7);
  const Diagnosis diagnosis = Diagnose(run);
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  EXPECT_THAT(finding.change, ::testing::StartsWith("OMP_NUM_THREADS=1 and DataLoader(num_workers="));
  EXPECT_GT(finding.speedup.low, 1);
}

TEST(OwnFeedTest, AnIteratorThatIsBlockedTakesNoCoreFromTheTraining) {
  const Diagnosis diagnosis = Diagnose(ATrainingThatWaits(Fed(Activity::kNetwork, 400, true), 2.6));
  EXPECT_NEAR(FindingIn(diagnosis, "input-bound")->speedup.expected,
              4 * replay::kCoresReached / (2.6 * replay::kTrainingApart), 0.01)
      << "only what else the cores have to do is in the way";
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

// Answers of other processes, 43 % of the time, and the policy's own passes.
ARun AWaitForAnswers() {
  ARun run = ATrainingThatWaits(Fed(Activity::kQueue, 400, false)).InEachStep(Share::kHostOther, 25);
  for (record::Step& step : run.rank().steps) {
    step.host_other_ns = {};
    step.host_other_ns[static_cast<size_t>(HostOther::kWithoutGradients)] = 10 * testing::kMs;
    step.host_other_ns[static_cast<size_t>(HostOther::kUnnamed)] = 15 * testing::kMs;
  }
  return run;
}

TEST(OwnFeedTest, AnEnvironmentThatAnswersIsNoLoader) {
  ARun run = AWaitForAnswers();
  run.rank().hot_lines.push_back({Share::kHostOther, "/home/u/train.py", 29, "main",
                                  "action = policy.sample()", 80, HostOther::kUnnamed, Activity::kEnvironment,
                                  false, ""});
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_THAT(diagnosis, Not(Finds("input-bound")));
  ASSERT_THAT(diagnosis, FindsCause("host-other", "rollout"));
  const Finding& finding = *FindingIn(diagnosis, "host-other");
  EXPECT_THAT(finding.title, HasSubstr("The loop spends 50 % of the time"));
  EXPECT_THAT(finding.title, HasSubstr("(50 %, most of it at train.py:31)"));
  EXPECT_TRUE(finding.method.empty());
}

TEST(OwnFeedTest, WhereItMayBeOneNoLoaderIsBlamedAndNothingPromised) {
  const Finding finding = *FindingIn(Diagnose(AWaitForAnswers()), "input-bound");
  EXPECT_THAT(finding.title, HasSubstr("for what another thread or process sends"));
  EXPECT_THAT(finding.title, Not(HasSubstr("loader")));
  EXPECT_TRUE(finding.method.empty());
}

}  // namespace
}  // namespace fullbore::diagnose
