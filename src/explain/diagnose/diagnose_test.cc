#include "explain/diagnose/diagnose.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "explain/diagnose/compare.h"
#include "explain/diagnose/testing/made_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::AddSeries;
using testing::kMs;
using testing::MadeLoader;
using testing::MadeRank;
using testing::MadeRun;
using testing::MadeStep;

MadeStep Waiting(int64_t) { return {.data_ms = 100}; }
MadeStep Usual(int64_t) { return {}; }

const Finding* Find(const Diagnosis& diagnosis, const std::string& id) {
  for (const Finding& finding : diagnosis.findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}

TEST(DiagnoseTest, AnEmptyRecordingIsNoCrashAndNoVerdict) {
  EXPECT_EQ(Diagnose({}).steps, 0);
  EXPECT_TRUE(Diagnose(MadeRun({})).findings.empty());
}

TEST(DiagnoseTest, ARunWithoutCausesIsHealthy) {
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 100, Usual)}));
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_EQ(diagnosis.findings[0].id, "healthy");
  EXPECT_NEAR(*diagnosis.samples_per_s, 320, 0.1);
}

TEST(DiagnoseTest, SharesSumToOne) {
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 100, Waiting)}));
  double sum = 0;
  for (const auto& [name, share] : diagnosis.shares) sum += share;
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(DiagnoseTest, WithoutWorkersTheCureIsWorkersAndTheGainIsWhatTheReplayGives) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(0, 100, 90, 89));
  const Diagnosis diagnosis = Diagnose(MadeRun({rank}));
  ASSERT_FALSE(diagnosis.findings.empty());
  const Finding& first = diagnosis.findings[0];
  EXPECT_EQ(first.id, "input-bound");
  EXPECT_EQ(first.cause, "no-workers");
  EXPECT_EQ(first.severity, Severity::kCritical);
  EXPECT_NEAR(first.share, 0.5, 1e-9);
  EXPECT_EQ(first.change, "DataLoader(num_workers=1)");
  // The training thread takes its 100 ms or less: it no longer decodes in between.
  EXPECT_GE(first.speedup.expected, 2);
  EXPECT_LE(first.speedup.expected, 2.2);
  EXPECT_EQ(first.where.at(0).line, 57);
}

TEST(DiagnoseTest, TimeBlockedIsStorage) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(1, 100, 200, 20));
  const Diagnosis diagnosis = Diagnose(MadeRun({rank}));
  EXPECT_EQ(diagnosis.findings.at(0).cause, "storage");
}

// 400 ms a fetch: 120 on a core, 80 waiting for one, 200 for storage.
double StepWithoutStorage(double cpu_utilization) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(1, 100, 400, 120));
  rank.loaders.back().run_delay_ns = 100 * 80 * kMs;
  auto run = MadeRun({rank}, /*cores=*/2);
  AddSeries(run, Metric::kCpuUtilization, cpu_utilization);
  return 200 / Diagnose(run).findings.at(0).speedup.expected;
}

TEST(DiagnoseTest, WhereCoresAreFreeTheWakingUpGoesWithTheWaitForStorage) {
  const double free = StepWithoutStorage(0.0), half = StepWithoutStorage(0.5), busy = StepWithoutStorage(1.0);
  EXPECT_NEAR(free, 117, 6);
  EXPECT_NEAR(half - free, 40, 2);
  EXPECT_NEAR(busy - half, 40, 2);
}

TEST(DiagnoseTest, WorkersThatFindNoCoreAreNotCuredByMore) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(2, 100, 400, 390));
  auto run = MadeRun({rank}, /*cores=*/2);
  AddSeries(run, Metric::kProcessCpu, 0.1, {{"role", "trainer"}});
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_EQ(diagnosis.findings.at(0).cause, "decode");
}

TEST(DiagnoseTest, TwentyWorkersForALightLoadAreOvercommitted) {
  auto rank = MadeRank(0, 100, Usual);
  rank.loaders.push_back(MadeLoader(20, 100, 30, 29));
  const Diagnosis diagnosis = Diagnose(MadeRun({rank}));
  const Finding* finding = Find(diagnosis, "worker-overcommit");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->change, "DataLoader(num_workers=1)");
}

TEST(DiagnoseTest, AFewStepsGiveAWarningAndNothingCritical) {
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 12, Waiting)}));
  const Finding* finding = Find(diagnosis, "input-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::kWarning);
}

TEST(DiagnoseTest, ASlowStartIsWarmupAndNoFinding) {
  const auto slow_start = [](int64_t i) { return i < 10 ? MadeStep{.other_ms = 2000} : MadeStep{}; };
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 100, slow_start)}));
  EXPECT_EQ(diagnosis.warmup_steps, 10);
  EXPECT_EQ(diagnosis.findings.at(0).id, "healthy");
  EXPECT_FALSE(diagnosis.warmup_why.empty());
}

TEST(DiagnoseTest, CodeBesideTrainingIsNamedByItsLine) {
  auto rank = MadeRank(0, 100, [](int64_t) { return MadeStep{.other_ms = 50}; });
  rank.hot_lines.push_back({record::Share::kHostOther, "/home/u/train.py", 70, "main", "log(metrics)", 9});
  const Diagnosis diagnosis = Diagnose(MadeRun({rank}));
  const Finding& first = diagnosis.findings.at(0);
  EXPECT_EQ(first.id, "host-other");
  EXPECT_NEAR(first.share, 1.0 / 3, 1e-9);
  EXPECT_NE(first.title.find("train.py:70"), std::string::npos);
}

TEST(DiagnoseTest, TheRankForWhichTheOthersWaitIsTheStraggler) {
  const auto waits = [](int64_t) { return MadeStep{.comm_ms = 50}; };
  const auto late = [](int64_t) { return MadeStep{.data_ms = 50}; };
  const Diagnosis diagnosis =
      Diagnose(MadeRun({MadeRank(0, 100, waits), MadeRank(1, 100, late), MadeRank(2, 100, waits)}));
  const Finding* finding = Find(diagnosis, "straggler");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("Rank 1"), std::string::npos);
  EXPECT_NEAR(finding->share, 1.0 / 3, 1e-6);
  EXPECT_EQ(Find(diagnosis, "comm-bound"), nullptr);
}

TEST(DiagnoseTest, RanksThatAllWaitAreCommBound) {
  const auto waits = [](int64_t) { return MadeStep{.comm_ms = 50}; };
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 100, waits), MadeRank(1, 100, waits)}));
  EXPECT_NE(Find(diagnosis, "comm-bound"), nullptr);
  EXPECT_EQ(Find(diagnosis, "straggler"), nullptr);
}

TEST(DiagnoseTest, WhatWasNotRecordedIsNotGuessed) {
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 100, Usual)}));
  const auto names = [&](const std::string& id) {
    return std::any_of(diagnosis.not_judged.begin(), diagnosis.not_judged.end(),
                       [&](const NotJudged& n) { return n.id.find(id) != std::string::npos; });
  };
  EXPECT_TRUE(names("collectives"));
  EXPECT_TRUE(names("device"));
}

TEST(DiagnoseTest, HighUtilisationWithIdleMultiprocessorsMisleads) {
  auto run = MadeRun({MadeRank(0, 100, Usual)});
  AddSeries(run, Metric::kGpuUtilization, 0.98, {{"gpu", "0"}});
  AddSeries(run, Metric::kGpuSmActive, 0.2, {{"gpu", "0"}});
  EXPECT_NE(Find(Diagnose(run), "low-activity"), nullptr);
}

TEST(DiagnoseTest, IdleTensorCoresAreNamed) {
  auto run = MadeRun({MadeRank(0, 100, Usual)});
  AddSeries(run, Metric::kGpuUtilization, 0.95, {{"gpu", "0"}});
  AddSeries(run, Metric::kGpuSmActive, 0.8, {{"gpu", "0"}});
  AddSeries(run, Metric::kGpuTensorActive, 0.0, {{"gpu", "0"}});
  EXPECT_NE(Find(Diagnose(run), "no-tensor-cores"), nullptr);
}

// A trace of one window: no steps, no loader, but device activity.
record::Recording MadeTrace(const std::function<void(record::RankInfo&)>& change) {
  auto rank = MadeRank(0, 1, Usual);
  rank.samples_known = false;
  rank.device_activity = true;
  rank.kernels = 1000;
  rank.steps[0].share_ns = {};
  change(rank);
  rank.steps[0].wall_ns =
      std::accumulate(rank.steps[0].share_ns.begin(), rank.steps[0].share_ns.end(), int64_t{0});
  auto recording = MadeRun({rank});
  recording.source = "kineto";
  return recording;
}

TEST(DiagnoseTraceTest, ShortKernelsBehindLateLaunchesAreNamedEvenInOneWindow) {
  const Diagnosis diagnosis = Diagnose(MadeTrace([](record::RankInfo& rank) {
    rank.compute_ns = 4 * kMs;
    rank.steps[0].share_ns[Index(record::Share::kCompute)] = 4 * kMs;
    rank.steps[0].share_ns[Index(record::Share::kLaunch)] = 16 * kMs;
  }));
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings[0].id, "launch-bound");
  EXPECT_EQ(diagnosis.findings[0].cause, "small-kernels");
  EXPECT_EQ(diagnosis.findings[0].severity, Severity::kWarning);
  EXPECT_TRUE(diagnosis.findings[0].evidence[0].begin_ns.has_value());
}

TEST(DiagnoseTraceTest, MatrixKernelsWithoutTensorCoresAreNamedByTheirShare) {
  const Diagnosis diagnosis = Diagnose(MadeTrace([](record::RankInfo& rank) {
    rank.compute_ns = 100 * kMs;
    rank.kernel_class_ns = {{"matmul", 60 * kMs}, {"elementwise", 40 * kMs}};
    rank.steps[0].share_ns[Index(record::Share::kCompute)] = 100 * kMs;
  }));
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings[0].id, "no-tensor-cores");
  EXPECT_NEAR(diagnosis.findings[0].share, 0.6, 1e-9);
}

TEST(DiagnoseTraceTest, SynchronisationsAreNamedByTheirCallSite) {
  const Diagnosis diagnosis = Diagnose(MadeTrace([](record::RankInfo& rank) {
    rank.steps[0].share_ns[Index(record::Share::kCompute)] = 80 * kMs;
    rank.steps[0].share_ns[Index(record::Share::kSync)] = 20 * kMs;
    rank.tables.emplace().syncs.push_back(
        {"cudaStreamSynchronize", "aten::item, train.py(81)", 5, 9 * kMs, 20 * kMs});
  }));
  const Finding* finding = Find(diagnosis, "sync-bound");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->evidence.at(1).what.find("train.py(81)"), std::string::npos);
}

TEST(DiagnoseTraceTest, CollectivesOfOneRankAreJudgedAndStragglersAreNot) {
  const Diagnosis diagnosis = Diagnose(MadeTrace([](record::RankInfo& rank) {
    rank.comm_ns = 30 * kMs;
    rank.steps[0].share_ns[Index(record::Share::kCompute)] = 70 * kMs;
    rank.steps[0].share_ns[Index(record::Share::kCommExposed)] = 30 * kMs;
  }));
  EXPECT_NE(Find(diagnosis, "comm-bound"), nullptr);
  EXPECT_EQ(diagnosis.not_judged.back().id.find("collectives"), std::string::npos);
}

// A healthy run on two cores that are always busy, `own` of them with the run itself.
record::Recording MadeBusyMachine(double own) {
  auto run = MadeRun({MadeRank(0, 100, Usual)}, /*cores=*/2);
  run.machine["cores_logical"] = "2";
  AddSeries(run, Metric::kCpuUtilization, 1.0);
  AddSeries(run, Metric::kProcessCpu, own, {{"role", "trainer"}});
  return run;
}

TEST(DiagnoseTest, CoresTakenByOtherProgramsAreToldAndAreNotTheRunsOwnIllness) {
  const Diagnosis diagnosis = Diagnose(MadeBusyMachine(0.5));
  EXPECT_NE(Find(diagnosis, "cpu-contention"), nullptr);
  EXPECT_EQ(diagnosis.findings.at(0).id, "healthy");
}

TEST(DiagnoseTest, ARunThatKeepsItsCoresBusyItselfHasNoContention) {
  EXPECT_EQ(Find(Diagnose(MadeBusyMachine(1.95)), "cpu-contention"), nullptr);
}

TEST(CompareTest, AFasterRunIsOutsideTheNoiseAndNamesTheShareThatMoved) {
  const auto jitter = [](int64_t data_ms) {
    return [data_ms](int64_t i) { return MadeStep{.data_ms = data_ms, .forward_ms = 40 + i % 3}; };
  };
  const Comparison comparison = Compare(Diagnose(MadeRun({MadeRank(0, 100, jitter(100))})),
                                        Diagnose(MadeRun({MadeRank(0, 100, jitter(0))})));
  EXPECT_NEAR(comparison.speedup, 2, 0.02);
  EXPECT_TRUE(comparison.significant);
  EXPECT_EQ(comparison.shares.at(0).what, "data_wait");
  EXPECT_EQ(comparison.findings_gone, std::vector<std::string>{"input-bound"});
}

TEST(CompareTest, APredictionIsJudgedOnlyWhereTheCauseWasTakenAway) {
  const Diagnosis waiting = Diagnose(MadeRun({MadeRank(0, 100, Waiting)}));
  EXPECT_FALSE(Compare(waiting, waiting).predicted.has_value());
  EXPECT_TRUE(Compare(waiting, Diagnose(MadeRun({MadeRank(0, 100, Usual)}))).predicted.has_value());
}

TEST(CompareTest, TheSameRunTwiceIsWithinTheNoise) {
  const auto jitter = [](int64_t i) { return MadeStep{.forward_ms = 40 + (i * 7) % 5}; };
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 100, jitter)}));
  EXPECT_FALSE(Compare(diagnosis, diagnosis).significant);
}

}  // namespace
}  // namespace fullbore::diagnose
