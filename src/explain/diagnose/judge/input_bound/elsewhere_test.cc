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
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::kMs;
using testing::LeavesOpen;
using ::testing::Not;

record::HotLine Waiting(Activity activity, int64_t samples) {
  return {Share::kDataWait, "/home/u/train.py",  31,       "main", "batch = rollouts.get()",
          samples,          HostOther::kUnnamed, activity, false,  ""};
}

// Steps of 100 ms that wait 150 ms more, on 4 cores, for a process that the command started; it keeps `cores` busy.
ARun ARollout(Activity activity, double cores = 0.1, const char* peer = "") {
  ARun run = ATraining()
                 .InEachStep(Share::kDataWait, 150)
                 .OnCores(4)
                 .Reading(Metric::kProcessCpu, 0.4, {{"role", "trainer"}})
                 .Reading(Metric::kProcessCpu, cores, {{"role", "other"}});
  for (record::Step& step : run.rank().steps) step.batches = 0;
  run.rank().hot_lines = {Waiting(activity, 600)};
  run.rank().facts["fed_by"] =
      std::string(R"([{"file": "/home/u/train.py", "line": 31, "peer": ")") + peer + "\"}]";
  return run;
}

record::Recording WithProcesses(const ARun& run) {
  record::Recording recording = run;
  recording.stages.front().processes = {
      {1, 0, "other", -1, "bash launch.sh", 0, 0},
      {2, 1, "trainer", 0, "python train.py", 0, 0},
      {3, 2, "other", -1, "python generate.py", 0, 0},
      {4, 2, "other", -1, "python -c from multiprocessing.resource_tracker import main", 0, 0},
      {5, 2, "other", -1, "nvidia-smi", 0, 1}};
  return recording;
}

TEST(ElsewhereTest, IsRaisedForAQueueThatAnotherProcessFills) {
  const Diagnosis diagnosis = Diagnose(ARollout(Activity::kQueue));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "rollout-elsewhere"));
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  EXPECT_THAT(finding.title, HasSubstr("60 % of the time at train.py:31 for what another process makes"));
  EXPECT_THAT(finding.title, HasSubstr("making a batch takes 250 ms, training on it 100 ms, 2.5 to one"));
  EXPECT_THAT(finding, Advises("3 such processes instead of 1"));
  EXPECT_NEAR(finding.speedup.expected, 2.5, 0.1) << "three of them end the wait";
  EXPECT_NEAR(finding.speedup.low, 1 / (1 - 0.6 * 2 / 3), 0.05) << "unless the training asks first";
  EXPECT_THAT(diagnosis, LeavesOpen("what limits the process"));
}

TEST(ElsewhereTest, IsNotRaisedForAThreadOfTheScript) {
  ARun run = ARollout(Activity::kQueue);
  run.rank().facts.erase("fed_by");
  EXPECT_THAT(Diagnose(run), FindsCause("input-bound", "own-loader"));
}

TEST(ElsewhereTest, IsNotRaisedWhereMostOfTheWaitIsForALoader) {
  ARun run = ARollout(Activity::kQueue);
  record::HotLine loading = Waiting(Activity::kDataPreparation, 700);
  loading.line = 40;
  loading.in_iterator = true;
  run.rank().hot_lines.push_back(loading);
  EXPECT_THAT(Diagnose(run), Not(FindsCause("input-bound", "rollout-elsewhere")));
}

TEST(ElsewhereTest, AnAnswerIsAskedForWhileTheTrainingComputes) {
  const Diagnosis diagnosis = Diagnose(ARollout(Activity::kNetwork, 0.1, "127.0.0.1:8000"));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "rollout-elsewhere"));
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  EXPECT_THAT(finding.title, HasSubstr("for the answers of 127.0.0.1:8000"));
  EXPECT_THAT(finding.title,
              HasSubstr("the answers of a step take 150 ms, the rest of it 100 ms, 1.5 to one"));
  EXPECT_THAT(finding.fix.front(),
              HasSubstr("send the question for the next batch before training on this one"));
  EXPECT_THAT(finding, Advises("and 2 such processes instead of 1"));
  EXPECT_THAT(finding, Advises("where it is a report that is answered"));
  EXPECT_NEAR(finding.speedup.expected, 250.0 / 150, 0.1);
}

TEST(ElsewhereTest, PromptsOfALoaderDoNotMakeItTheLoaders) {
  ARun run = ARollout(Activity::kNetwork);
  for (record::Step& step : run.rank().steps) step.batches = 1;
  record::Loader prompts;
  prompts.id = 1;
  prompts.feeds_training = true;
  prompts.num_workers = 1;
  prompts.batches = 100;
  prompts.fetch_ns = 100 * kMs;
  prompts.cpu_ns = 100 * kMs;
  EXPECT_THAT(Diagnose(run.FedBy(prompts)), FindsCause("input-bound", "rollout-elsewhere"));
}

TEST(ElsewhereTest, TheOtherProcessIsNamedWithWhatItUses) {
  const Diagnosis diagnosis = Diagnose(WithProcesses(ARollout(Activity::kQueue, 0.9)));
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  const auto named = std::ranges::find_if(finding.evidence, [](const Evidence& evidence) {
    return evidence.what == "CPU of the other process of this run, 3: python generate.py";
  });
  ASSERT_NE(named, finding.evidence.end());
  EXPECT_NEAR(named->value, 0.9, 0.001);
}

TEST(ElsewhereTest, WhereNoCoreIsIdleNothingIsPromised) {
  const Diagnosis diagnosis = Diagnose(ARollout(Activity::kQueue, 3.6));
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  EXPECT_TRUE(finding.method.empty());
  EXPECT_THAT(finding, Advises("no core of this machine is idle"));
}

TEST(ElsewhereTest, WhereItMayBeAnEnvironmentNothingIsPromised) {
  ARun run = ARollout(Activity::kQueue).InEachStep(Share::kHostOther, 10);
  run.OfWhichEachStep(HostOther::kWithoutGradients, 10);
  const Diagnosis diagnosis = Diagnose(run);
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  EXPECT_THAT(finding, Advises("an environment's answer"));
  EXPECT_TRUE(finding.method.empty());
}

}  // namespace
}  // namespace fullbore::diagnose
