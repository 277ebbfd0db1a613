#include "explain/diagnose/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/diagnose/testing/made_run.h"

namespace fullbore::diagnose {
namespace {

using record::Index;
using record::Share;
using testing::kMs;
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

// 20 of the lead's steps' time, or 60 of it: as many samples a second.
TEST(DiagnoseTest, AProgramThatTrainsForALittleOfTheTimeAddsNothingToTheThroughput) {
  const auto beside = [](int64_t steps) {
    return *Diagnose(MadeRun({MadeRank(0, 100, Usual), MadeRank(1, steps, Usual)})).samples_per_s;
  };
  EXPECT_NEAR(beside(20), 320, 0.1);
  EXPECT_NEAR(beside(60), 640, 0.1);
}

// 600 steps in windows of ten, of which the first hundred were kept in full, and forty that took ten times as long. The
// windows of the first third have so many samples.
Diagnosis OfALongRun(int64_t samples_of_a_third) {
  record::RankInfo rank = MadeRank(0, 100, Usual);
  for (int64_t i = 0; i < 40; ++i) {
    record::Step slow = rank.steps.front();
    slow.index = 200 + 10 * i;
    slow.share_ns[Index(Share::kForward)] += 900 * kMs;
    slow.wall_ns += 900 * kMs;
    slow.end_ns = 100 * kMs * (slow.index + 10);
    rank.steps.push_back(slow);
  }
  for (int64_t i = 0; i < 60; ++i) {
    record::StepWindow window{i * 1'000 * kMs, (i + 1) * 1'000 * kMs, 10 * i, 10};
    window.samples = i < 20 ? samples_of_a_third : 320;
    window.share_ns[Index(Share::kForward)] = 1'000 * kMs;
    rank.windows.push_back(window);
  }
  return Diagnose(MadeRun({rank}));
}

TEST(DiagnoseTest, SlowStepsThatAreKeptWithoutTheOthersDoNotMakeTheRateUncertain) {
  const Diagnosis even = OfALongRun(320), uneven = OfALongRun(160);
  EXPECT_NEAR(*even.samples_per_s, 320, 0.1);
  EXPECT_LT(*even.samples_per_s_high, 1.01 * *even.samples_per_s);
  EXPECT_GT(*uneven.samples_per_s_high, 1.05 * *uneven.samples_per_s) << "that of all steps does";
}

TEST(DiagnoseTest, SharesSumToOne) {
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 100, Waiting)}));
  double sum = 0;
  for (const auto& [name, share] : diagnosis.shares) sum += share;
  EXPECT_NEAR(sum, 1, 1e-9);
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

TEST(DiagnoseTest, StepsOfTheWarmupThatWereNotRecordedAreNotCounted) {
  auto rank = MadeRank(0, 100, [](int64_t i) { return i < 15 ? MadeStep{.other_ms = 1'900} : MadeStep{}; });
  std::erase_if(rank.steps, [](const record::Step& step) { return step.index >= 5 && step.index < 10; });
  const Diagnosis diagnosis = Diagnose(MadeRun({rank}));
  EXPECT_EQ(diagnosis.warmup_steps, 10);
  EXPECT_EQ(diagnosis.steps, 85);
  EXPECT_THAT(diagnosis.warmup_why, ::testing::StartsWith("the first 10 steps took 2.0"));
}

TEST(DiagnoseTest, ALongSlowStartThatNothingExplainsIsShownAndNotLeftOut) {
  const auto slow_start = [](int64_t i) { return MadeStep{.forward_ms = i < 40 ? 80 : 40}; };
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 100, slow_start)}));
  EXPECT_LE(diagnosis.warmup_steps, 20);
  ASSERT_EQ(diagnosis.regimes.size(), 2u);
  EXPECT_EQ(diagnosis.regimes[0].steps + diagnosis.warmup_steps, 40);
  EXPECT_NEAR(diagnosis.regimes[0].mean_step_ns, 140e6, 1);
  EXPECT_NEAR(diagnosis.regimes[1].mean_step_ns, 100e6, 1);
}

TEST(DiagnoseTest, ALongSlowStartOfACompilerIsWarmup) {
  auto rank = MadeRank(0, 100, [](int64_t i) { return MadeStep{.forward_ms = i < 40 ? 80 : 40}; });
  rank.facts["compile"] = "\"default\"";
  const Diagnosis diagnosis = Diagnose(MadeRun({rank}));
  EXPECT_EQ(diagnosis.warmup_steps, 40);
  EXPECT_TRUE(diagnosis.regimes.empty());
}

TEST(DiagnoseTest, ALongSlowStartOfAColdLoaderIsWarmup) {
  const auto cold = [](int64_t i) { return MadeStep{.data_ms = i < 40 ? 40 : 1}; };
  EXPECT_EQ(Diagnose(MadeRun({MadeRank(0, 100, cold)})).warmup_steps, 40);
}

TEST(DiagnoseTest, AFirstStepInWhichLibrariesStartSaysNothingOfAColdLoader) {
  const auto cold = [](int64_t i) {
    MadeStep step;
    step.data_ms = i < 40 ? 60 : 1;
    if (i == 0) step.forward_ms += 5'000;
    return step;
  };
  EXPECT_EQ(Diagnose(MadeRun({MadeRank(0, 100, cold)})).warmup_steps, 40);
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

}  // namespace
}  // namespace fullbore::diagnose
