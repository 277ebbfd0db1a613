#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::HostOther;
using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::kMs;
using testing::MadeLoader;
using testing::MadeRank;
using testing::MadeRun;
using testing::MadeStep;
using ::testing::Not;

// Batches of a thousand samples, each of which takes 2 us to get and 1 us to put together with the others.
record::Loader OfSmallSamples(int64_t workers = 0) {
  record::Loader loader = MadeLoader(workers, 100, 3, 3);
  loader.id = 1;
  loader.default_collate = true;
  loader.batch_size = 1000;
  loader.samples = 1000 * 100;
  loader.collate_ns = 100 * kMs;
  loader.slowest_sample_ns = {};
  return loader;
}

// Steps of 5 ms, of which 3 wait for data.
record::RankInfo Small(record::Loader loader) {
  auto rank = MadeRank(0, 100, [](int64_t) {
    return MadeStep{.data_ms = 3, .forward_ms = 1, .backward_ms = 1, .optimizer_ms = 0};
  });
  rank.loaders.push_back(std::move(loader));
  return rank;
}

ARun OverSlices(record::Loader loader = OfSmallSamples()) {
  ARun run(MadeRun({Small(std::move(loader))}));
  run.rank().facts["slices"] = R"({"1": {"fields": 2, "bytes": 160}})";
  return run;
}

TEST(CollateTest, SlicesThatAreTakenOneByOneAreFetchedInWholeBatchesWithAGain) {
  record::Loader loader = OfSmallSamples();
  loader.dataset = "TensorDataset";
  const Diagnosis diagnosis = Diagnose(OverSlices(loader));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "slices"));
  const Finding& finding = diagnosis.findings.at(0);
  EXPECT_THAT(finding, Advises("sampler=BatchSampler(loader.sampler, 1000, loader.drop_last)"));
  EXPECT_THAT(finding, Not(Advises("RandomSampler"))) << "the order, and what a rank loads, stay as they are";
  EXPECT_THAT(finding, Not(Advises("randperm")));
  EXPECT_THAT(finding, Advises("a TensorDataset takes a list of indices as it is"));
  EXPECT_GT(finding.speedup.low, 1.5);
  EXPECT_GT(finding.speedup.expected, 1.9);
  EXPECT_LE(finding.speedup.high, 2.51) << "5 ms without the 3 of the wait";
}

TEST(CollateTest, SlicesOfALoaderWithBatchesOfItsOwnKeepThem) {
  record::Loader loader = OfSmallSamples();
  loader.batch_size.reset();  // DataLoader(batch_sampler=...)
  const Diagnosis diagnosis = Diagnose(OverSlices(loader));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "slices"));
  EXPECT_THAT(diagnosis.findings.at(0), Advises("batch_size=None, sampler=loader.batch_sampler)"));
}

TEST(CollateTest, SlicesOfAFileThatIsYetToBeReadWaitForIt) {
  record::Loader loader = OfSmallSamples();
  loader.dataset = "TensorDataset";
  loader.collate_ns = 100 * 2 * kMs;
  loader.cpu_ns = 100 * kMs;  // of 3 ms a fetch: two thirds are page faults
  EXPECT_THAT(Diagnose(OverSlices(loader)), Not(FindsCause("input-bound", "slices")));
}

TEST(CollateTest, WhatTheFetchOfSlicesWaitsForIsNotPromised) {
  record::Loader loader = OfSmallSamples();
  loader.dataset = "TensorDataset";
  const double all = Diagnose(OverSlices(loader)).findings.at(0).speedup.low;
  loader.cpu_ns = 100 * 2'100'000;  // 0.9 ms of each fetch
  const Diagnosis diagnosis = Diagnose(OverSlices(loader));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "slices"));
  EXPECT_LT(diagnosis.findings.at(0).speedup.low, all);
  EXPECT_LT(diagnosis.findings.at(0).speedup.high, 2) << "not 5 ms without all 3 of the wait";
}

TEST(CollateTest, WhatADatasetComputesBesidesItsSlicesStays) {
  record::Loader loader = MadeLoader(0, 100, 300, 300);  // 300 us a sample, of which a slice is 2
  loader.id = 1;
  loader.default_collate = true;
  loader.samples = 1000 * 100;
  auto rank = MadeRank(0, 100, [](int64_t) { return MadeStep{.data_ms = 300}; });
  rank.loaders.push_back(loader);
  ARun run(MadeRun({rank}));
  run.rank().facts["slices"] = R"({"1": {"fields": 2, "bytes": 160}})";
  EXPECT_THAT(Diagnose(run), FindsCause("input-bound", "no-workers"));
}

TEST(CollateTest, TheSlicesOfAnotherLoaderSayNothingOfThisOne) {
  ARun run = OverSlices();
  run.rank().facts["slices"] = R"({"2": {"fields": 2, "bytes": 160}})";
  EXPECT_THAT(Diagnose(run), Not(FindsCause("input-bound", "slices")));
}

TEST(CollateTest, LargeSlicesAreMostlyCopied) {
  ARun run = OverSlices();
  run.rank().facts["slices"] = R"({"1": {"fields": 2, "bytes": 40000}})";
  EXPECT_THAT(Diagnose(run), Not(FindsCause("input-bound", "slices")));
}

TEST(CollateTest, GarbageOfTheSamplesGoesWithThem) {
  record::Loader loader = OfSmallSamples();
  loader.dataset = "TensorDataset";
  loader.fetch_ns = loader.cpu_ns = 100 * 5 * kMs;  // its clock counts collections, too
  loader.batch_fetch_ns = {};
  for (int i = 0; i < 100; ++i) loader.batch_fetch_ns.Add(5.0 * kMs);
  ARun run =
      OverSlices(loader).InEachStep(Share::kHostOther, 2).OfWhichEachStep(HostOther::kGarbageCollection, 2);
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "slices"));
  const Finding& finding = diagnosis.findings.at(0);
  EXPECT_EQ(finding.id, "input-bound") << "it gains more than an advice for the collections alone";
  EXPECT_THAT(finding.title, HasSubstr("29 % more for the garbage of that"));
  EXPECT_GT(finding.speedup.low, 1.6);
  EXPECT_GT(finding.speedup.high, 2.5);
  EXPECT_LE(finding.speedup.high, 3.51) << "7 ms without 3 of the wait and 2 of collections";
}

TEST(CollateTest, AFewSamplesBringAboutNoCollections) {
  record::Loader loader = OfSmallSamples();
  loader.dataset = "TensorDataset";
  loader.samples = 100 * 100;
  loader.fetch_ns = loader.cpu_ns = 100 * 5 * kMs;
  loader.batch_fetch_ns = {};
  for (int i = 0; i < 100; ++i) loader.batch_fetch_ns.Add(5.0 * kMs);
  ARun run =
      OverSlices(loader).InEachStep(Share::kHostOther, 2).OfWhichEachStep(HostOther::kGarbageCollection, 2);
  const Diagnosis diagnosis = Diagnose(run);
  const Finding& finding = *FindingIn(diagnosis, "input-bound");
  EXPECT_THAT(finding.title, Not(HasSubstr("garbage")));
  EXPECT_LE(finding.speedup.high, 1.76) << "7 ms without 3 of the wait";
}

TEST(CollateTest, SamplesThatAreMadeAnewAreNotPromisedMoreThanTheCallsOfCollate) {
  record::Loader loader = OfSmallSamples();
  loader.collate_ns = 100 * 2 * kMs;  // two thirds of the fetch
  const Diagnosis diagnosis = Diagnose(MadeRun({Small(loader)}));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "collate"));
  EXPECT_LE(diagnosis.findings.at(0).speedup.high, 1.68) << "5 ms without 2 of collate";
}

TEST(CollateTest, WorkersThatKeepUpAreNotCuredByAQuickerCollate) {
  // Of 40 ms of waiting for two workers that need 1 ms for a batch, nearly all is the handing over.
  record::Loader loader = MadeLoader(2, 100, 1, 1);
  loader.collate_ns = 100 * kMs / 2;
  loader.default_collate = true;
  const Diagnosis diagnosis = Diagnose(ATraining().InEachStep(Share::kDataWait, 40).FedBy(loader));
  ASSERT_THAT(diagnosis, FindsCause("input-bound", "hand-over"));
  EXPECT_EQ(diagnosis.findings.at(0).change, "DataLoader(num_workers=0)");
}

TEST(CollateTest, WhereNoMoreWorkersHelpItIsSaidWhatTheirTimeGoesInto) {
  record::Loader loader = MadeLoader(1, 100, 90, 89);
  const auto line = [](int64_t samples, int number, const char* library) {
    record::HotLine seen{Share::kDataWait, "/home/u/load.py", number, "__getitem__", "", samples};
    seen.library = library;
    return seen;
  };
  loader.lines = {line(70, 40, "h5py"), line(20, 40, ""), line(10, 41, "numpy")};
  auto rank = MadeRank(0, 100, [](int64_t) { return MadeStep{.data_ms = 20}; });
  rank.loaders.push_back(loader);
  auto run = MadeRun({rank}, /*cores=*/1);
  const Finding finding = *FindingIn(Diagnose(run), "input-bound");
  EXPECT_THAT(finding.title, HasSubstr("; 90 % of a fetch is load.py:40, in h5py."));
  EXPECT_THAT(finding, Advises("chunks of one sample"));
}

TEST(CollateTest, OfAFewSamplesNothingIsSaid) {
  record::Loader loader = MadeLoader(1, 100, 90, 89);
  loader.lines = {{Share::kDataWait, "/home/u/load.py", 40, "__getitem__", "", 3}};
  auto rank = MadeRank(0, 100, [](int64_t) { return MadeStep{.data_ms = 20}; });
  rank.loaders.push_back(loader);
  EXPECT_THAT(FindingIn(Diagnose(MadeRun({rank}, /*cores=*/1)), "input-bound")->title,
              Not(HasSubstr("of a fetch is")));
}

TEST(CollateTest, ASampleThatWaitsForACoreIsNotASlowOne) {
  record::Loader loader = MadeLoader(0, 100, 200, 60);
  loader.slowest_sample_ns = {};
  for (int i = 0; i < 100; ++i) loader.slowest_sample_ns.Add(i < 20 ? 5.0 * kMs : 150.0 * kMs);
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kDataWait, 200).FedBy(loader)),
              FindsCause("input-bound", "slow-sample"));
  loader.run_delay_ns = 100 * 130 * kMs;
  EXPECT_THAT(Diagnose(ATraining().InEachStep(Share::kDataWait, 200).FedBy(loader)),
              Not(FindsCause("input-bound", "slow-sample")));
}

}  // namespace
}  // namespace fullbore::diagnose
