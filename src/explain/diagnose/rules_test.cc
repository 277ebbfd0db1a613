// The four rules of thumb that people go by, as findings say them.
#include <gtest/gtest.h>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/testing/made_run.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;
using testing::AddSeries;
using testing::MadeLoader;
using testing::MadeRank;
using testing::MadeRun;
using testing::MadeStep;

MadeStep Waiting(int64_t) { return {.data_ms = 300}; }
MadeStep Usual(int64_t) { return {}; }

bool Advises(const Finding& finding, const std::string& words) {
  for (const std::string& fix : finding.fix) {
    if (fix.find(words) != std::string::npos) return true;
  }
  return false;
}

record::Recording WaitsForItsLoader(int64_t workers, double gpu, double cpu) {
  auto rank = MadeRank(0, 100, Waiting);
  rank.loaders.push_back(MadeLoader(workers, 100, 300 * std::max<int64_t>(1, workers), 290));
  auto run = MadeRun({rank});
  AddSeries(run, Metric::kGpuUtilization, gpu, {{"gpu", "0"}});
  AddSeries(run, Metric::kCpuUtilization, cpu);
  return run;
}

TEST(RulesTest, LowDeviceAndHighCpuIsLoadingOrPreprocessing) {
  const Diagnosis diagnosis = Diagnose(WaitsForItsLoader(0, 0.15, 0.97));
  const Finding& first = diagnosis.findings.at(0);
  EXPECT_EQ(first.id, "input-bound");
  EXPECT_TRUE(Advises(first, "loading or preprocessing is the narrow pipe"));
  EXPECT_FALSE(Advises(first, "serial"));
}

TEST(RulesTest, LowDeviceAndLowCpuIsSerialCode) {
  const Diagnosis loading = Diagnose(WaitsForItsLoader(0, 0.15, 0.13));
  EXPECT_EQ(loading.findings.at(0).cause, "no-workers");
  EXPECT_TRUE(Advises(loading.findings.at(0), "parallelise"));

  auto run = MadeRun({MadeRank(0, 100, [](int64_t) { return MadeStep{.other_ms = 300}; })});
  AddSeries(run, Metric::kGpuUtilization, 0.15, {{"gpu", "0"}});
  AddSeries(run, Metric::kCpuUtilization, 0.13);
  const Diagnosis looping = Diagnose(run);
  EXPECT_EQ(looping.findings.at(0).id, "host-other");
  EXPECT_TRUE(Advises(looping.findings.at(0), "parallelise"));
}

TEST(RulesTest, ABusyDeviceGetsNeitherAdvice) {
  const Diagnosis diagnosis = Diagnose(WaitsForItsLoader(0, 0.60, 0.97));
  EXPECT_FALSE(Advises(diagnosis.findings.at(0), "narrow pipe"));
  EXPECT_FALSE(Advises(diagnosis.findings.at(0), "parallelise"));
}

TEST(RulesTest, LowHostMemoryMeansThatMoreWorkersAreAffordable) {
  for (const bool roomy : {true, false}) {
    auto run = WaitsForItsLoader(1, 0.15, 0.5);
    AddSeries(run, Metric::kMemoryAvailable, roomy ? 50e9 : 0.2e9);
    AddSeries(run, Metric::kProcessMemory, 1e9, {{"role", "loader"}});
    const Diagnosis diagnosis = Diagnose(run);
    const Finding& first = diagnosis.findings.at(0);
    EXPECT_EQ(first.cause, "too-few-workers");
    EXPECT_EQ(Advises(first, "host memory allows more workers"), roomy);
    EXPECT_EQ(Advises(first, "host memory is short"), !roomy);
  }
}

TEST(RulesTest, LowDeviceMemoryMeansThatALargerBatchIsWorthTrying) {
  for (const bool roomy : {true, false}) {
    auto run = MadeRun({MadeRank(0, 100, Usual)});
    AddSeries(run, Metric::kGpuUtilization, 0.95, {{"gpu", "0"}});
    AddSeries(run, Metric::kGpuSmActive, 0.5, {{"gpu", "0"}});
    AddSeries(run, Metric::kGpuTensorActive, 0.3, {{"gpu", "0"}});
    AddSeries(run, Metric::kGpuMemoryUsed, roomy ? 9e9 : 70e9, {{"gpu", "0"}});
    AddSeries(run, Metric::kGpuMemoryTotal, 80e9, {{"gpu", "0"}});
    bool said = false;
    for (const Finding& finding : Diagnose(run).findings) said |= finding.id == "small-batch";
    EXPECT_EQ(said, roomy);
  }
}

}  // namespace
}  // namespace fullbore::diagnose
