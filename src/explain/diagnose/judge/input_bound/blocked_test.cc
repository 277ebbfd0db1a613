#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Activity;
using record::Metric;
using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::kMs;
using testing::MadeLoader;
using ::testing::Not;

// Half of each step of 200 ms is a wait for `workers` workers, whose fetches compute for a tenth of their time.
ARun WaitsForBlockedFetches(int64_t workers) {
  return ATraining()
      .InEachStep(Share::kDataWait, 100)
      .FedBy(MadeLoader(workers, 100, 200 * std::max<int64_t>(1, workers), 20))
      .OnCores(2);
}

ARun& Reads(ARun& run, double bytes_per_s) {
  return run.Reading(Metric::kProcessIoRead, bytes_per_s, {{"role", "loader"}});
}

// A run of three seconds, of which two readings are in the steady state.
TEST(BlockedFetchesTest, WhatWasReadWhileTheScriptStartedIsNotStorage) {
  ARun made = WaitsForBlockedFetches(1);
  record::Recording run = Reads(made, 20e6);
  for (record::Series& series : run.stages.front().series) {
    if (IsOf(series.key, Metric::kProcessIoRead)) series.readings.resize(2);
  }
  EXPECT_EQ(FindingIn(Diagnose(run), "input-bound")->cause, "blocked");
}

record::HotLine Seen(Activity activity, int64_t samples) {
  record::HotLine line;
  line.share = Share::kDataWait;
  line.file = "/home/u/train.py";
  line.line = 31;
  line.samples = samples;
  line.activity = activity;
  return line;
}

Finding InputBoundOf(const ARun& run) { return *FindingIn(Diagnose(run), "input-bound"); }

TEST(BlockedFetchesTest, AreStorageWhereTheRunItselfReadsFromADisk) {
  ARun run = WaitsForBlockedFetches(1);
  const Finding finding = InputBoundOf(Reads(run, 20e6));
  EXPECT_EQ(finding.cause, "storage");
  EXPECT_THAT(finding.title, HasSubstr("waiting for storage"));
}

TEST(BlockedFetchesTest, AreNotStorageWhereOnlyOthersReadFromIt) {
  ARun run = WaitsForBlockedFetches(1);
  run.Reading(Metric::kCpuIowait, 0.6)
      .Reading(Metric::kPsiIoSome, 0.8)
      .Reading(Metric::kDiskRead, 200e6, {{"device", "sda"}});
  const Finding finding = InputBoundOf(Reads(run, 0));
  EXPECT_EQ(finding.cause, "blocked");
  EXPECT_THAT(finding.title, Not(HasSubstr("storage")));
  EXPECT_THAT(finding, Not(Advises("disk")));
}

TEST(BlockedFetchesTest, SayNothingOfDisksWhereTheReadsAreNotKnown) {
  const Finding finding = InputBoundOf(WaitsForBlockedFetches(1));
  EXPECT_EQ(finding.cause, "blocked");
  EXPECT_THAT(finding.title, HasSubstr("is spent waiting, not computing"));
}

TEST(BlockedFetchesTest, AreToldWhatMoreWorkersThanCoresWouldBringAndNotPromisedIt) {
  ARun run = ATraining().InEachStep(Share::kDataWait, 700).FedBy(MadeLoader(0, 100, 700, 20)).OnCores(2);
  run.rank().device = "cuda:0";
  const Finding finding = InputBoundOf(Reads(run, 0));
  EXPECT_THAT(finding, Advises("DataLoader(num_workers=7) is "));
  EXPECT_EQ(finding.change, "") << "all may wait for one link";
  EXPECT_LE(finding.speedup.high, 8) << "no more than without any wait";
}

TEST(BlockedFetchesTest, ThatWaitForALockAreNotCuredByWorkers) {
  ARun run = WaitsForBlockedFetches(2);
  run.rank().loaders.front().lines = {Seen(Activity::kLock, 80), Seen(Activity::kSleep, 20)};
  const Finding finding = InputBoundOf(Reads(run, 0));
  EXPECT_THAT(finding, Not(Advises("num_workers")));
  EXPECT_THAT(finding.title, HasSubstr("for a lock"));
}

TEST(BlockedFetchesTest, OfADiskThatIsBusyAreNotCuredByWorkers) {
  ARun run = WaitsForBlockedFetches(1);
  run.Reading(Metric::kDiskBusy, 0.97, {{"device", "sda"}});
  EXPECT_THAT(InputBoundOf(Reads(run, 20e6)), Not(Advises("num_workers")));
}

TEST(BlockedFetchesTest, NameTheLineInWhichWorkersWereSeen) {
  ARun run = WaitsForBlockedFetches(1);
  run.rank().loaders.front().lines = {Seen(Activity::kNetwork, 60)};
  const Finding finding = InputBoundOf(Reads(run, 0));
  ASSERT_GE(finding.where.size(), 2u);
  EXPECT_EQ(finding.where.front().line, 57) << "where the loader is made";
  EXPECT_EQ(finding.where[1].line, 31);
  EXPECT_THAT(finding.title, HasSubstr("for the network"));
}

// Every tenth step waits a second for its epoch to begin, 0.9 s of it in the sampler.
ARun DrawsLongOrders(int64_t draw_ms) {
  record::Loader loader = MadeLoader(0, 100, 2, 2);
  loader.restarts = 9;
  loader.restart_wait_ns = 9 * 1'000 * kMs;
  loader.draws = draw_ms > 0 ? 9 : 0;
  loader.draw_ns = 9 * draw_ms * kMs;
  loader.dataset_samples = 20'000'000;
  ARun run = ATraining();
  for (int64_t i = 5; i < 95; i += 10) run.InStep(i, Share::kDataWait, 1'000);
  return run.FedBy(loader);
}

// Three quarters of each step.
double GainWithoutWaits(const char* device, int threads) {
  ARun run = ATraining()
                 .InEachStep(Share::kDataWait, 300)
                 .FedBy(MadeLoader(1, 100, 400, 20))
                 .OnCores(4)
                 .Reading(Metric::kProcessCpu, 0.25 * threads, {{"role", "trainer"}});
  run.rank().device = device;
  run.rank().facts["torch_threads"] = std::to_string(threads);
  return InputBoundOf(run).speedup.expected;
}

TEST(BlockedFetchesTest, WithoutThemADeviceGainsTheWaitAndTheHostWhatItsPausesCostToo) {
  EXPECT_NEAR(GainWithoutWaits("cuda:0", 2), 4, 0.01);
  EXPECT_NEAR(GainWithoutWaits("cpu", 1), 400 / (100 - 0.03 * 300), 0.1) << "caches grow cold";
  EXPECT_NEAR(GainWithoutWaits("cpu", 2), 400 / (100 - 20), 0.1) << "and a pool falls asleep";
}

TEST(SamplerTest, ThatDrawsALongOrderIsNamedAndWorkersAreNot) {
  const Diagnosis diagnosis = Diagnose(DrawsLongOrders(900));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "sampler"));
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  EXPECT_THAT(finding.title, HasSubstr("took 900 ms to draw the order of 20,000,000 samples"));
  EXPECT_EQ(finding.change, "");
  EXPECT_THAT(finding, Advises("RandomSampler"));
  EXPECT_EQ(FindingIn(diagnosis, "unstable-steps"), nullptr) << "the same steps";
}

TEST(SamplerTest, ThatIsQuickIsNotBlamedForWhatAnEpochsFirstBatchTakes) {
  EXPECT_THAT(Diagnose(DrawsLongOrders(50)), Not(FindsCause("input-bound", "sampler")));
}

// Half of each step of 200 ms is a wait for the next batch, of which the fetch takes so much.
ARun DrawsEachBatch(int64_t fetch_ms, int64_t workers = 0, bool pins = false) {
  record::Loader loader = MadeLoader(workers, 100, fetch_ms, fetch_ms);
  loader.pin_memory = pins;
  loader.wait_ns.Add(100.0 * kMs, 100);
  return ATraining().InEachStep(Share::kDataWait, 100).FedBy(loader).OnCores(2);
}

TEST(SamplerTest, ThatTakesLongForEachBatchIsNamedAndNotTheFetch) {
  const Finding finding = InputBoundOf(DrawsEachBatch(10));
  EXPECT_EQ(finding.cause, "sampler");
  EXPECT_THAT(finding.title, HasSubstr("90 % of that its sampler takes"));
  EXPECT_THAT(finding, Advises("prepare once"));
  EXPECT_NEAR(finding.speedup.high, 1 / (1 - 0.45), 0.01);
}

TEST(SamplerTest, OfEachBatchIsNotBlamedWhereTheFetchTakesTheTimeOrWorkersFetch) {
  EXPECT_NE(InputBoundOf(DrawsEachBatch(95)).cause, "sampler");
  EXPECT_NE(InputBoundOf(DrawsEachBatch(10, 2)).cause, "sampler");
}

TEST(SamplerTest, OfEachBatchIsNotBlamedWhereBatchesArePinnedOrNoFetchWasSeen) {
  EXPECT_NE(InputBoundOf(DrawsEachBatch(10, 0, /*pins=*/true)).cause, "sampler");
  EXPECT_NE(InputBoundOf(DrawsEachBatch(0)).cause, "sampler");
}

// Workers whose fetches wait for a core half of their time, where one worker more would have a core.
ARun PinnedWorkers(double allowed) {
  record::Loader loader = MadeLoader(2, 100, 400, 180);
  loader.run_delay_ns = 100 * 200 * kMs;
  return ATraining()
      .InEachStep(Share::kDataWait, 100)
      .FedBy(loader)
      .OnCores(8)
      .Reading(Metric::kProcessCpusAllowed, allowed, {{"role", "loader"}});
}

TEST(AffinityTest, NarrowerThanTheCommandsIsNamedRatherThanFullCores) {
  const Diagnosis diagnosis = Diagnose(PinnedWorkers(1));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "affinity"));
  EXPECT_THAT(FindingIn(diagnosis, "input-bound")->title,
              HasSubstr("may run on 1 of the command's 8 cores only"));
}

TEST(AffinityTest, OfAllCoresIsNotNamed) {
  EXPECT_THAT(Diagnose(PinnedWorkers(8)), Not(FindsCause("input-bound", "affinity")));
}

}  // namespace
}  // namespace fullbore::diagnose
