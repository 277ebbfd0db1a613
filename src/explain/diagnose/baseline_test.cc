#include "explain/diagnose/baseline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/statistics.h"
#include "explain/diagnose/testing/made_run.h"

namespace fullbore::diagnose {
namespace {

using testing::MadeRank;
using testing::MadeRun;
using testing::MadeStep;

constexpr int kTrials = 2000;

// How often new starts that are `slower` by so much are outside the noise of others, all of the same spread.
double PartCalledSlower(size_t before, size_t after, double spread, double slower) {
  std::mt19937 random(1);
  std::normal_distribution<double> chance(0, spread);
  int called = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Starts starts;
    for (size_t i = 0; i < before; ++i) starts.before.push_back(std::exp(chance(random)));
    for (size_t i = 0; i < after; ++i) starts.after.push_back((1 - slower) * std::exp(chance(random)));
    called += RatioOfStarts(starts.before, starts.after, StudentT95)->high < 1 ? 1 : 0;
  }
  return static_cast<double>(called) / kTrials;
}

TEST(BaselineTest, OneInFortyIsCalledSlowerWithoutBeing) {
  for (const auto& [before, after] : {std::pair<size_t, size_t>{3, 1}, {7, 1}, {5, 5}})
    EXPECT_NEAR(PartCalledSlower(before, after, 0.05, 0), 0.025, 0.01) << before << " and " << after;
}

TEST(BaselineTest, WhatIsFoundDependsOnWhatStartsDifferByAndOnTheirNumber) {
  EXPECT_GT(PartCalledSlower(7, 1, 0.01, 0.06), 0.99);
  EXPECT_LT(PartCalledSlower(7, 1, 0.03, 0.06), 0.6);
  EXPECT_GT(PartCalledSlower(8, 8, 0.03, 0.06), 0.95);
}

TEST(BaselineTest, TwoStartsDoNotTellWhatStartsDifferBy) {
  EXPECT_FALSE(RatioOfStarts({1, 1.01}, {0.9}, StudentT95));
  Comparison comparison;
  comparison.speedup = 0.9, comparison.interval_known = true;
  HoldAgainstStarts({{1, 1.01}, {0.9}}, {}, comparison);
  EXPECT_FALSE(comparison.interval_known);
}

TEST(BaselineTest, AComparisonBecomesOneOfAllStarts) {
  Comparison comparison;
  HoldAgainstStarts({{99, 100, 101}, {91}}, {{99, 100, 101}, {93, 95}}, comparison);
  EXPECT_EQ(comparison.starts, 3u);
  EXPECT_EQ(comparison.new_starts, 1u);
  EXPECT_NEAR(comparison.speedup, 0.91, 1e-3);
  EXPECT_TRUE(comparison.significant);
  EXPECT_NEAR(comparison.undisturbed->value, 0.94, 1e-3);
  EXPECT_LT(comparison.undisturbed->low, 0.93);
}

TEST(BaselineTest, TwoFiguresAreAskedMoreOfThanOne) {
  Comparison one, both;
  HoldAgainstStarts({{99, 100, 101, 102}, {91}}, {}, one);
  HoldAgainstStarts({{99, 100, 101, 102}, {91}}, {{99, 100, 101, 102}, {94}}, both);
  EXPECT_NEAR(std::log(both.speedup_high / both.speedup) / std::log(one.speedup_high / one.speedup),
              4.177 / 3.182, 0.01);
}

std::optional<double> PaceOf(int64_t steps, const std::function<MadeStep(int64_t)>& shape) {
  const record::Recording run = MadeRun({MadeRank(0, steps, shape)});
  const Diagnosis diagnosis = Diagnose(run);
  const auto gain = GainUndisturbed(run, diagnosis);
  return gain ? std::optional(*gain * diagnosis.steps_per_s) : std::nullopt;
}

// As neighbours do it who slow three of four steps.
TEST(BaselineTest, WhatDisturbsMostStepsIsNotInThePace) {
  const auto quiet = PaceOf(400, [](int64_t) { return MadeStep{.data_ms = 10}; });
  const auto loud = PaceOf(400, [](int64_t i) { return MadeStep{.data_ms = i % 4 == 0 ? 10 : 90}; });
  ASSERT_TRUE(quiet && loud);
  EXPECT_NEAR(*quiet, *loud, 1e-6 * *quiet);
}

TEST(BaselineTest, WhatEveryStepDoesIsInThePace) {
  const auto before = PaceOf(400, [](int64_t) { return MadeStep{.data_ms = 10}; });
  const auto after = PaceOf(400, [](int64_t) { return MadeStep{.data_ms = 20}; });
  ASSERT_TRUE(before && after);
  EXPECT_NEAR(*after / *before, 110.0 / 120, 1e-6);
}

TEST(BaselineTest, FewStepsHaveNoPace) {
  EXPECT_FALSE(PaceOf(150, [](int64_t) { return MadeStep{.data_ms = 10}; }));
}

}  // namespace
}  // namespace fullbore::diagnose
