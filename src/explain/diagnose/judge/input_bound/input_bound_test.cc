#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using record::Share;
using testing::AddSeries;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using testing::kMs;
using testing::LeavesOpen;
using testing::MadeLoader;
using testing::MadeRank;
using testing::MadeRun;
using testing::MadeStep;
using ::testing::Not;

MadeStep Waiting(int64_t) { return {.data_ms = 100}; }

TEST(InputBoundTest, IsRaisedByATwentiethOfWaiting) {
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kDataWait, 6)), Finds("input-bound"));
}

TEST(InputBoundTest, IsNotRaisedByLess) {
  const Diagnosis diagnosis =
      Diagnose(ATraining().InEachStep(Share::kDataWait, 5).FedBy(MadeLoader(2, 100, 90, 89)));
  EXPECT_THAT(diagnosis, Not(Finds("input-bound")));
  EXPECT_EQ(diagnosis.would_not_help.at(0).what, "more loader workers");
}

TEST(InputBoundTest, WithoutARecordedLoaderTheCauseIsLeftOpen) {
  const Diagnosis diagnosis = Diagnose(ATraining().InEachStep(Share::kDataWait, 100));
  EXPECT_THAT(diagnosis, FindsCause("input-bound", ""));
  EXPECT_THAT(diagnosis, LeavesOpen("which part of the loader is slow"));
}

TEST(InputBoundTest, WhereALibraryRunsTheLoopItsOptionIsNamed) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(0, 100, 90, 89));
  rank.hot_lines = {{Share::kDataWait, "/x/site-packages/transformers/trainer.py", 9, "train", "", 50,
                     record::HostOther::kUnnamed, record::Activity::kUnknown, false, "transformers"}};
  EXPECT_THAT(*FindingIn(Diagnose(MadeRun({rank})), "input-bound"), Advises("dataloader_num_workers"));
}

TEST(InputBoundTest, WithoutWorkersTheCureIsWorkersAndTheGainIsWhatTheReplayGives) {
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

// 400 ms a fetch: 120 on a core, 80 waiting for one, 200 for a disk that is busy.
double StepWithoutStorage(double cpu_utilization) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(1, 100, 400, 120));
  rank.loaders.back().run_delay_ns = 100 * 80 * kMs;
  auto run = MadeRun({rank}, /*cores=*/2);
  AddSeries(run, Metric::kDiskBusy, 0.95, {{"device", "sda"}});
  AddSeries(run, Metric::kProcessIoRead, 30e6, {{"role", "loader"}});
  AddSeries(run, Metric::kCpuUtilization, cpu_utilization);
  return 200 / Diagnose(run).findings.at(0).speedup.expected;
}

TEST(InputBoundTest, WhereCoresAreFreeTheWakingUpGoesWithTheWaitForStorage) {
  const double free = StepWithoutStorage(0.0), half = StepWithoutStorage(0.3), busy = StepWithoutStorage(0.6);
  EXPECT_NEAR(free, 117, 6);
  EXPECT_NEAR(half - free, 24, 2);
  EXPECT_NEAR(busy - half, 24, 2);
}

TEST(InputBoundTest, WorkersThatFindNoCoreAreNotCuredByMore) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(2, 100, 400, 390));
  auto run = MadeRun({rank}, /*cores=*/2);
  AddSeries(run, Metric::kProcessCpu, 0.1, {{"role", "trainer"}});
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_EQ(diagnosis.findings.at(0).cause, "decode");
}

TEST(InputBoundTest, WhereWorkersImportTheScriptItIsSaidWhatThatTakes) {
  for (const std::string method : {"fork", "spawn", "forkserver", ""}) {
    record::Loader loader = MadeLoader(0, 100, 90, 89);
    loader.start_method = method;
    const Diagnosis diagnosis = Diagnose(ATraining().InEachStep(Share::kDataWait, 100).FedBy(loader));
    ASSERT_THAT(diagnosis, FindsCause("input-bound", "no-workers"));
    const bool is_said = ::testing::Value(diagnosis.findings.at(0), Advises("if __name__ == \"__main__\""));
    EXPECT_EQ(is_said, method == "spawn" || method == "forkserver") << method;
  }
}

TEST(InputBoundTest, ALongCollateIsNamed) {
  record::Loader loader = MadeLoader(1, 100, 200, 199);
  loader.collate_ns = 100 * 150 * kMs;
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kDataWait, 100).FedBy(loader)),
              FindsCause("input-bound", "collate"));
}

TEST(InputBoundTest, TorchsOwnCollateIsNotToldToBeWrittenBetter) {
  record::Loader loader = MadeLoader(1, 100, 200, 199);
  loader.collate_ns = 100 * 150 * kMs;
  loader.default_collate = true;
  const Diagnosis diagnosis = Diagnose(ATraining().InEachStep(Share::kDataWait, 100).FedBy(loader));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "collate"));
  EXPECT_THAT(diagnosis.findings.at(0), Advises("fetch whole batches"));
  EXPECT_THAT(diagnosis.findings.at(0), Not(Advises("vectorised")));
}

TEST(InputBoundTest, OneSlowSampleInABatchIsNamed) {
  record::Loader loader = MadeLoader(1, 100, 200, 199);
  loader.slowest_sample_ns = {};
  for (int i = 0; i < 100; ++i) loader.slowest_sample_ns.Add(i < 20 ? 5.0 * kMs : 150.0 * kMs);
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kDataWait, 100).FedBy(loader)),
              FindsCause("input-bound", "slow-sample"));
}

TEST(InputBoundTest, WaitsAtTheStartOfEpochsAreCuredByKeepingTheWorkers) {
  record::Loader loader = MadeLoader(2, 100, 150, 149);
  loader.restarts = 9;
  loader.restart_wait_ns = 9 * 300 * kMs;
  ARun run = ATraining();
  for (int64_t i = 5; i < 95; i += 10) run.InStep(i, Share::kDataWait, 300);
  const Diagnosis diagnosis = Diagnose(run.FedBy(loader));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "epoch-start"));
  EXPECT_EQ(FindingIn(diagnosis, "input-bound")->change, "DataLoader(persistent_workers=True)");
}

TEST(InputBoundTest, WhereThePoolKeepsTheCoresItSharesThemWithWorkers) {
  ARun run = ATraining().InEachStep(Share::kDataWait, 150).FedBy(MadeLoader(0, 100, 150, 149)).OnCores(2);
  run.rank().facts["torch_threads"] = "2";
  run.Reading(Metric::kProcessCpu, 1.8, {{"role", "trainer"}})
      .Reading(Metric::kProcessSpin, 0.3, {{"role", "trainer"}})
      .Reading(Metric::kCpuUtilization, 0.9);
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "no-workers"));
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  EXPECT_EQ(finding.change, "OMP_NUM_THREADS=1 and DataLoader(num_workers=1)");
  EXPECT_GT(finding.speedup.low, 1);
  EXPECT_LT(finding.speedup.expected, 250.0 / 150) << "a batch takes its worker 150 ms";
}

TEST(InputBoundTest, OnADeviceThePoolOfTheHostDoesNotCount) {
  ARun run = ATraining().InEachStep(Share::kDataWait, 150).FedBy(MadeLoader(0, 100, 150, 149)).OnCores(2);
  run.rank().facts["torch_threads"] = "2";
  run.rank().device = "NVIDIA A100-SXM4-80GB";
  run.Reading(Metric::kProcessCpu, 1.4, {{"role", "trainer"}}).Reading(Metric::kCpuUtilization, 0.7);
  EXPECT_EQ(FindingIn(Diagnose(run), "input-bound")->change, "DataLoader(num_workers=1)");
}

TEST(InputBoundTest, APoolThatDoesAllTheWorkSharesNothing) {
  ARun run = ATraining().InEachStep(Share::kDataWait, 10).FedBy(MadeLoader(0, 100, 10, 10)).OnCores(2);
  run.rank().facts["torch_threads"] = "2";
  run.Reading(Metric::kProcessCpu, 1.95, {{"role", "trainer"}})
      .Reading(Metric::kProcessSpin, 0, {{"role", "trainer"}})
      .Reading(Metric::kCpuUtilization, 0.98);
  EXPECT_EQ(FindingIn(Diagnose(run), "input-bound")->change, "");
}

TEST(InputBoundTest, StepsThatBeginAnEpochBecomeLikeTheOthers) {
  record::Loader loader = MadeLoader(2, 100, 150, 149);
  loader.restarts = 9;
  loader.restart_wait_ns = 9 * 300 * kMs;
  ARun run = ATraining();
  // What was copied after a fork makes the step longer than the wait for it.
  for (int64_t i = 5; i < 95; i += 10) run.InStep(i, Share::kDataWait, 300).InStep(i, Share::kForward, 200);
  const Diagnosis diagnosis = Diagnose(run.FedBy(loader));
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  const double others_ns = 100e6;
  EXPECT_NEAR(finding.speedup.expected, diagnosis.mean_step_ns / others_ns, 0.01);
  EXPECT_LT(finding.speedup.low, finding.speedup.expected);
}

TEST(InputBoundTest, AtTheStartOfEpochsTheLoaderThatStartsNothingAnewIsAdvisedIfItGainsMore) {
  record::Loader loader = MadeLoader(1, 100, 150, 149);
  loader.restarts = 9;
  loader.restart_wait_ns = 9 * 300 * kMs;
  loader.dataset = "ImageFolder";
  loader.fast_sample_ns = kMs / 2;
  ARun run = ATraining().InEachStep(Share::kDataWait, 20);
  for (int64_t i = 5; i < 95; i += 10) run.InStep(i, Share::kDataWait, 300);
  const Diagnosis diagnosis = Diagnose(run.FedBy(loader));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "epoch-start"));
  EXPECT_THAT(FindingIn(diagnosis, "input-bound")->change, ::testing::StartsWith("fullbore run --fast-data"));
  EXPECT_THAT(*FindingIn(diagnosis, "input-bound"), Advises("or DataLoader(persistent_workers=True)"));
}

// A DataLoader whose CPU work sets the pace, over a dataset of that class.
Finding FirstOfDataLoader(const std::string& dataset) {
  auto rank = MadeRank(0, 100, [](int64_t) { return MadeStep{.data_ms = 100}; });
  rank.loaders.push_back(MadeLoader(0, 100, 90, 89));
  rank.loaders[0].dataset = dataset;
  auto run = MadeRun({rank});
  run.stages[0].command = {"python", "train.py", "--name", "a b"};
  return Diagnose(run).findings.at(0);
}

TEST(InputBoundTest, AFolderOfImagesIsToldOfTheFastLoaderAndPromisedNothing) {
  const Finding folder = FirstOfDataLoader("ImageFolder");
  EXPECT_THAT(folder, Advises("fullbore run --fast-data -- python train.py --name 'a b'"));
  EXPECT_THAT(folder, Advises("fullbore.data.from_torch(loader)"));
  const Finding other = FirstOfDataLoader("Photos");
  EXPECT_THAT(other, Not(Advises("--fast-data")));
  EXPECT_THAT(other, Advises("make loading itself cheaper"));
  EXPECT_EQ(folder.speedup.expected, other.speedup.expected);
}

TEST(InputBoundTest, WhereTheCoresAreFullNoWorkerIsAdvised) {
  auto rank = MadeRank(0, 100, [](int64_t) { return MadeStep{.data_ms = 20}; });
  rank.loaders.push_back(MadeLoader(0, 100, 19, 18));
  auto run = MadeRun({rank}, /*cores=*/2);
  AddSeries(run, Metric::kProcessCpu, 1.9, {{"role", "trainer"}});
  const Finding finding = Diagnose(run).findings.at(0);
  EXPECT_EQ(finding.id, "input-bound");
  EXPECT_EQ(finding.change, "");
  EXPECT_EQ(finding.method, "");
  EXPECT_THAT(finding, Advises("more workers will not help: the cores are full"));
}

// Two cores: the command uses one, and another program the rest, on equal terms.
Finding BesideAnotherProgram(int64_t workers, double cores_of_command) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(workers, 100, 200, 100));
  rank.loaders[0].run_delay_ns = 100 * 100 * kMs;
  auto run = MadeRun({rank}, /*cores=*/2);
  run.machine["cores_logical"] = "2";
  AddSeries(run, Metric::kProcessCpu, cores_of_command, {{"role", "trainer"}});
  AddSeries(run, Metric::kCpuUtilization, 1.0);
  const Diagnosis diagnosis = Diagnose(run);
  return *FindingIn(diagnosis, "input-bound");
}

TEST(InputBoundTest, CoresThatOtherProgramsKeepBusyAreNotPromisedToWorkersButNamed) {
  const Finding none = BesideAnotherProgram(0, 1);
  EXPECT_EQ(none.cause, "no-workers");
  EXPECT_NE(none.title.find("other programs keep the cores busy that workers need"), std::string::npos);
  EXPECT_EQ(none.change, "");
  EXPECT_THAT(none, Advises("other programs keep 1 of 2 cores busy"));
}

TEST(InputBoundTest, WhereTheCommandItselfFillsTheCoresNoOtherProgramIsBlamed) {
  const Finding full = BesideAnotherProgram(0, 2);
  EXPECT_EQ(full.title.find("other programs"), std::string::npos);
  EXPECT_THAT(full, Not(Advises("other programs keep")));
}

// Two ranks on two cores, each with a loader that one worker would hide if the other rank were not there.
TEST(InputBoundTest, RanksShareTheCoresThatWorkersWouldTake) {
  std::vector<record::RankInfo> ranks;
  for (int i = 0; i < 2; ++i) {
    ranks.push_back(MadeRank(i, 100, Waiting));
    ranks.back().loaders.push_back(MadeLoader(0, 100, 90, 89));
  }
  auto alone = MadeRun({ranks[0]}, /*cores=*/2), beside = MadeRun(ranks, /*cores=*/2);
  AddSeries(alone, Metric::kProcessCpu, 1.0, {{"role", "trainer"}});
  AddSeries(beside, Metric::kProcessCpu, 2.0, {{"role", "trainer"}});
  EXPECT_EQ(Diagnose(alone).findings.at(0).change, "DataLoader(num_workers=1)");
  EXPECT_EQ(Diagnose(beside).findings.at(0).change, "");
}

TEST(InputBoundTest, ALoaderThatIsFasterThanTheTrainingIsNotWhatSetsThePace) {
  auto rank = MadeRank(0, 100, [](int64_t) { return MadeStep{.data_ms = 40}; });
  rank.loaders.push_back(MadeLoader(1, 100, 4, 4));
  const Finding finding = Diagnose(MadeRun({rank}, /*cores=*/2)).findings.at(0);
  EXPECT_EQ(finding.cause, "hand-over");
  EXPECT_EQ(finding.change, "DataLoader(num_workers=0)");
}

TEST(InputBoundTest, TheCheaperLoaderIsAdvisedWithItsGainWhereItsCostIsKnown) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(0, 100, 90, 89));
  rank.loaders[0].dataset = "ImageFolder";
  rank.loaders[0].fast_sample_ns = kMs;  // a third of the original's
  auto run = MadeRun({rank}, /*cores=*/1);
  AddSeries(run, Metric::kProcessCpu, 1.0, {{"role", "trainer"}});
  const Finding finding = Diagnose(run).findings.at(0);
  EXPECT_THAT(finding.change, ::testing::StartsWith("fullbore run --fast-data -- "));
  EXPECT_GT(finding.speedup.low, 1);
  EXPECT_LT(finding.speedup.high, 1.9);  // 100 ms of training and 32 of loading on the one core
}

TEST(InputBoundTest, WhatTheCheaperLoaderBringsIncludesThatWorkersHandNothingOver) {
  const auto predicted = [](const std::string& batch_shape) {
    auto rank = MadeRank(0, 100, [](int64_t) { return MadeStep{.data_ms = 100}; });
    rank.loaders.push_back(MadeLoader(1, 100, 190, 189));
    rank.loaders[0].dataset = "ImageFolder";
    rank.loaders[0].fast_sample_ns = kMs / 2;
    rank.facts["batch_shape"] = batch_shape;
    auto run = MadeRun({rank}, /*cores=*/4);
    AddSeries(run, Metric::kProcessCpu, 0.5, {{"role", "trainer"}});
    const Finding finding = Diagnose(run).findings.at(0);
    EXPECT_THAT(finding.change, ::testing::StartsWith("fullbore run --fast-data -- "));
    return finding.speedup.expected;
  };
  // The batch of 19.3 MB is touched and unmapped in 6.2 of the 100 ms of training.
  EXPECT_NEAR(predicted("[32, 3, 224, 224]") / predicted(""), 100 / 93.8, 0.005);
}

TEST(InputBoundTest, WhereFullboreDataIsMissingItIsSaidHowToGetIt) {
  for (const bool missing : {true, false}) {
    record::Loader loader = MadeLoader(0, 100, 90, 89);
    loader.dataset = "ImageFolder";
    ARun run = ATraining().InEachStep(Share::kDataWait, 100).FedBy(loader);
    if (missing) run.rank().facts["fast_data"] = "\"missing\"";
    const Finding finding = Diagnose(run).findings.at(0);
    EXPECT_THAT(finding, Advises("fullbore run --fast-data"));
    EXPECT_EQ(::testing::Value(finding, Advises("pip install . in fullbore's sources")), missing);
  }
}

TEST(InputBoundTest, OfASampledProcessPromisesNoMultiplesOfTen) {
  ARun run = ATraining().InEachStep(Share::kDataWait, 9'900).FedBy(MadeLoader(0, 100, 9'900, 20));
  run.rank().facts["sampled"] = R"({"samples": 900, "points": 0.02})";
  EXPECT_EQ(FindingIn(Diagnose(run), "input-bound")->method, "");
}

// A worker would bring its batches on the second core, if that were free.
Finding BesideALittle(double others) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(0, 100, 100, 100));
  auto run = MadeRun({rank}, /*cores=*/2);
  run.machine["cores_logical"] = "2";
  AddSeries(run, Metric::kProcessCpu, 1, {{"role", "trainer"}});
  AddSeries(run, Metric::kCpuUtilization, (1 + others) / 2);
  const Diagnosis diagnosis = Diagnose(run);
  return *FindingIn(diagnosis, "input-bound");
}

TEST(InputBoundTest, WhatOthersTakeOfTheCoresIsInThePredictionFromTheFirstPerCent) {
  const double alone = BesideALittle(0).speedup.expected, little = BesideALittle(0.33).speedup.expected;
  EXPECT_GT(alone, 1.8);
  EXPECT_LT(little, 1.67) << "200 ms of work on 1.67 cores";
  EXPECT_LT(BesideALittle(0.1).speedup.expected, alone);
}

TEST(InputBoundTest, ALoaderThatCannotBeServedIsToldWhy) {
  record::Loader loader = MadeLoader(0, 100, 90, 89);
  loader.dataset = "ImageFolder";
  loader.fast_refused = "collate_fn=pad (train) is not the default one";
  const Diagnosis diagnosis = Diagnose(ATraining().InEachStep(Share::kDataWait, 100).FedBy(loader));
  EXPECT_THAT(diagnosis.findings.at(0),
              Advises("fullbore.data cannot serve this loader: collate_fn=pad (train)"));
  EXPECT_THAT(diagnosis.findings.at(0), Not(Advises("--fast-data")));
}

TEST(InputBoundTest, ACollateThatIsBlockedIsNotToldToComputeFaster) {
  record::Loader loader = MadeLoader(1, 100, 200, 50);
  loader.collate_ns = 100 * 150 * kMs;
  const Diagnosis diagnosis = Diagnose(ATraining().InEachStep(Share::kDataWait, 100).FedBy(loader));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "collate"));
  EXPECT_THAT(diagnosis.findings.at(0), Advises("find what collate waits for"));
  EXPECT_THAT(diagnosis.findings.at(0), Not(Advises("vectorised")));
}

// Waits for three quarters of its time for its loader.
ARun WaitsForItsLoader(int64_t workers, double gpu, double cpu) {
  return ATraining()
      .InEachStep(Share::kDataWait, 300)
      .FedBy(MadeLoader(workers, 100, 300 * std::max<int64_t>(1, workers), 290))
      .OnGpu(Metric::kGpuUtilization, gpu)
      .Reading(Metric::kCpuUtilization, cpu);
}

TEST(InputBoundTest, LowDeviceAndHighCpuIsLoadingOrPreprocessing) {
  const Diagnosis diagnosis = Diagnose(WaitsForItsLoader(0, 0.15, 0.97));
  EXPECT_EQ(diagnosis.findings.at(0).id, "input-bound");
  EXPECT_THAT(diagnosis.findings.at(0), Advises("loading or preprocessing is the narrow pipe"));
  EXPECT_THAT(diagnosis.findings.at(0), Not(Advises("serial")));
}

TEST(InputBoundTest, LowDeviceAndLowCpuIsSerialCode) {
  const Diagnosis diagnosis = Diagnose(WaitsForItsLoader(0, 0.15, 0.13));
  EXPECT_EQ(diagnosis.findings.at(0).cause, "no-workers");
  EXPECT_THAT(diagnosis.findings.at(0), Advises("parallelise"));
}

TEST(InputBoundTest, ABusyDeviceGetsNeitherAdvice) {
  const Diagnosis diagnosis = Diagnose(WaitsForItsLoader(0, 0.60, 0.97));
  EXPECT_THAT(diagnosis.findings.at(0), Not(Advises("narrow pipe")));
  EXPECT_THAT(diagnosis.findings.at(0), Not(Advises("parallelise")));
}

TEST(InputBoundTest, FreeHostMemoryDecidesHowMoreWorkersAreAdvised) {
  for (const bool roomy : {true, false}) {
    const Diagnosis diagnosis = Diagnose(WaitsForItsLoader(1, 0.15, 0.5)
                                             .Reading(Metric::kMemoryAvailable, roomy ? 50e9 : 0.2e9)
                                             .Reading(Metric::kProcessMemory, 1e9, {{"role", "loader"}}));
    ASSERT_THAT(diagnosis, FindsCause("input-bound", "too-few-workers"));
    const Finding& finding = *FindingIn(diagnosis, "input-bound");
    EXPECT_THAT(finding, Advises(roomy ? "host memory allows more workers" : "host memory is tight"));
    EXPECT_THAT(finding, Not(Advises(roomy ? "host memory is tight" : "host memory allows more workers")));
  }
}

}  // namespace
}  // namespace fullbore::diagnose
