// Made runs of fullbore.data, one for each stage that can bind.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/testing/made_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::AddSeries;
using testing::MadeRank;
using testing::MadeRun;
using testing::MadeStep;

// What the loader's counters say of the steady state, in threads.
struct Made {
  std::map<std::string, double> busy;
  double threads = 4, on_cores = 4;
  double want_core = 0, no_room = 0, user_waits = 0;
  double wait = 0.5;
  double cores_used = 3.9;  // of 4
  int64_t chosen_threads = 0, map_processes = 0;
  int64_t data_ms = 100;  // of a step that computes for 100 ms
};

record::Recording RunOf(const Made& made) {
  auto rank = MadeRank(0, 100, [&](int64_t) { return MadeStep{.data_ms = made.data_ms}; });
  record::Loader loader;
  loader.id = 1;
  loader.library = record::kFullboreData;
  loader.dataset = "ImageFolder";
  loader.feeds_training = true;
  loader.batch_size = 32;
  loader.threads = made.chosen_threads;
  loader.map_processes = made.map_processes;
  loader.where = "/home/u/train.py:57";
  rank.loaders.push_back(loader);
  auto run = MadeRun({rank}, /*cores=*/4);
  const auto labels = [](const std::string& stage) {
    return record::Labels{{"loader", "1"}, {"rank", "0"}, {"stage", stage}};
  };
  for (const auto& [stage, threads] : made.busy) AddSeries(run, Metric::kLoaderBusy, threads, labels(stage));
  AddSeries(run, Metric::kLoaderBlockedCore, made.want_core, {{"loader", "1"}, {"rank", "0"}});
  AddSeries(run, Metric::kLoaderBlockedRoom, made.no_room, {{"loader", "1"}, {"rank", "0"}});
  if (made.user_waits > 0)
    AddSeries(run, Metric::kLoaderBlockedUser, made.user_waits, {{"loader", "1"}, {"rank", "0"}});
  AddSeries(run, Metric::kLoaderThreads, made.threads, labels("read"));
  AddSeries(run, Metric::kLoaderThreads, made.on_cores, labels("collate"));
  AddSeries(run, Metric::kLoaderWait, made.wait, {{"loader", "1"}, {"rank", "0"}});
  AddSeries(run, Metric::kLoaderReadyBatches, 0, {{"loader", "1"}, {"rank", "0"}});
  AddSeries(run, Metric::kProcessCpu, made.cores_used, {{"role", "trainer"}});
  return run;
}

Finding First(const Made& made) {
  const Diagnosis diagnosis = Diagnose(RunOf(made));
  return diagnosis.findings.empty() ? Finding{} : diagnosis.findings.front();
}

bool Advises(const Finding& finding, const std::string& words) {
  return std::any_of(finding.fix.begin(), finding.fix.end(),
                     [&](const std::string& fix) { return fix.find(words) != std::string::npos; });
}

double EvidenceOf(const Finding& finding, const std::string& what) {
  for (const Evidence& evidence : finding.evidence) {
    if (evidence.what == what) return evidence.value;
  }
  return -1;
}

Made Reading() {
  return {.busy = {{"read", 3.4}, {"decode", 0.4}, {"transform", 0.1}, {"collate", 0.05}}, .cores_used = 1};
}
Made Decoding() { return {.busy = {{"read", 0.3}, {"decode", 2.7}, {"transform", 0.8}, {"collate", 0.1}}}; }

TEST(JudgeInputStagesTest, ThreadsThatAreInAReadBlameTheStorage) {
  const Finding finding = First(Reading());
  EXPECT_EQ(finding.id, "input-bound");
  EXPECT_EQ(finding.cause, "storage");
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_TRUE(Advises(finding, "memory_cache_bytes"));
  EXPECT_NEAR(EvidenceOf(finding, "threads in read"), 3.4, 1e-9);
  EXPECT_EQ(finding.where.at(0).line, 57);
  // Of 200 ms a step, 100 are training, and what remains of loading hides behind them.
  EXPECT_GT(finding.speedup.expected, 1.7);
  EXPECT_LE(finding.speedup.expected, 2.1);
}

TEST(JudgeInputStagesTest, ReadsOnAMachineWithoutAnIdleCoreBlameTheStorageOnlyWhereItShows) {
  Made made = {.busy = {{"read", 2.2}, {"decode", 1.6}, {"transform", 0.1}, {"collate", 0.05}}};
  EXPECT_EQ(First(made).cause, "decode");
  auto run = RunOf(made);
  AddSeries(run, Metric::kPsiIoSome, 0.4);
  EXPECT_EQ(Diagnose(run).findings.at(0).cause, "storage");

  made = Reading();  // others keep the cores busy, but no thread of the loader wants one
  made.cores_used = 3.9;
  EXPECT_EQ(First(made).cause, "storage");
}

TEST(JudgeInputStagesTest, DecodingOnAllCoresAsksForCoresAndSmallerImages) {
  const Finding finding = First(Decoding());
  EXPECT_EQ(finding.cause, "decode");
  EXPECT_NE(finding.title.find("no core is left"), std::string::npos);
  EXPECT_TRUE(Advises(finding, "more CPU cores"));
  EXPECT_TRUE(Advises(finding, "offline"));
  EXPECT_TRUE(Advises(finding, "scaled_decode"));
  EXPECT_GT(finding.speedup.expected, 1.1);
}

TEST(JudgeInputStagesTest, ManyThreadsInAReadDoNotBlameItWhileOthersQueueForACore) {
  Made made = Decoding();
  made.threads = 20;
  made.busy["read"] = 9;
  made.want_core = 7;
  EXPECT_EQ(First(made).cause, "decode");
}

TEST(JudgeInputStagesTest, TransformsThatTakeMostAreNamed) {
  Made made = Decoding();
  std::swap(made.busy["decode"], made.busy["transform"]);
  EXPECT_EQ(First(made).cause, "transform");
}

TEST(JudgeInputStagesTest, FewThreadsByChoiceOnIdleCoresAreToBeLeftToTheLoader) {
  Made made = {.busy = {{"read", 0.1}, {"decode", 0.8}, {"collate", 0.05}}, .threads = 1, .on_cores = 1};
  made.cores_used = 1.5;
  made.chosen_threads = 1;
  const Finding finding = First(made);
  EXPECT_EQ(finding.cause, "too-few-threads");
  EXPECT_EQ(finding.change, "ImageFolder(threads=0)");
  EXPECT_GT(finding.speedup.expected, 1.5);
  made.chosen_threads = 0;
  EXPECT_EQ(First(made).cause, "decode");
}

TEST(JudgeInputStagesTest, AUsersStageInThreadsIsMovedIntoProcesses) {
  Made made = {.busy = {{"read", 0.2}, {"decode", 0.4}, {"user", 1.0}, {"collate", 0.1}},
               .user_waits = 2.2,
               .cores_used = 1.6};
  const Finding finding = First(made);
  EXPECT_EQ(finding.cause, "user-stage");
  EXPECT_EQ(finding.change, "ImageFolder(map_processes=4)");
  EXPECT_NE(finding.title.find("3.20 threads at a time"), std::string::npos) << finding.title;
  EXPECT_NE(finding.title.find("2.20 of them wait in it"), std::string::npos) << finding.title;
  EXPECT_TRUE(finding.method.empty());  // what the pipes to processes cost is not in the counters
  made.cores_used = 3.9;                // no core is left for them
  EXPECT_EQ(First(made).change, "");
  EXPECT_TRUE(Advises(First(made), "map_processes=4"));
  made.map_processes = 4;  // then they wait for these
  EXPECT_EQ(First(made).title.find("wait in it"), std::string::npos);
  EXPECT_EQ(First(made).change, "");
}

TEST(JudgeInputStagesTest, ATrainingThatWaitsForTheInterpreterBehindAUsersStageIsToldSo) {
  Made made = {.busy = {{"read", 0.2}, {"decode", 0.4}, {"user", 3.2}, {"collate", 0.1}}, .wait = 0.1};
  EXPECT_EQ(First(made).cause, "user-stage");
  made.map_processes = 4;  // these hold interpreters of their own
  EXPECT_EQ(First(made).cause, "hand-over");
}

TEST(JudgeInputStagesTest, CollateAndCopiesAreNamed) {
  EXPECT_EQ(First({.busy = {{"read", 0.5}, {"collate", 3.3}}}).cause, "collate");
  EXPECT_EQ(
      First({.busy = {{"read", 0.5}, {"decode", 0.6}, {"collate", 0.1}, {"copy", 0.9}}, .cores_used = 1.5})
          .cause,
      "copy");
}

TEST(JudgeInputStagesTest, IdleThreadsWhileTheTrainingWaitsAreBursts) {
  Made made = Decoding();
  for (auto& [stage, threads] : made.busy) threads /= 4;
  made.no_room = 2.9;
  const Finding finding = First(made);
  EXPECT_EQ(finding.cause, "bursts");
  EXPECT_TRUE(finding.method.empty());  // what would be gained is not in the counters
}

TEST(JudgeInputStagesTest, AWaitOutsideTheLoaderBlamesNoStage) {
  Made made = Decoding();
  made.wait = 0.1;
  EXPECT_EQ(First(made).cause, "hand-over");
}

TEST(JudgeInputStagesTest, ATrainingThatNeverWaitsIsHealthy) {
  Made made = Decoding();
  made.data_ms = 0;
  made.wait = 0;
  const Diagnosis diagnosis = Diagnose(RunOf(made));
  EXPECT_EQ(diagnosis.findings.at(0).id, "healthy");
  EXPECT_EQ(diagnosis.would_not_help.at(0).what, "more threads in the loader");
}

TEST(JudgeInputStagesTest, WithoutItsCountersNoStageIsBlamed) {
  auto run = RunOf(Decoding());
  std::erase_if(run.stages[0].series,
                [](const auto& series) { return IsOf(series.key, Metric::kLoaderWait); });
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_EQ(diagnosis.findings.at(0).id, "input-bound");
  EXPECT_EQ(diagnosis.findings.at(0).cause, "");
  EXPECT_EQ(diagnosis.not_judged.at(0).id, "which stage of the loader binds");
}

}  // namespace
}  // namespace fullbore::diagnose
