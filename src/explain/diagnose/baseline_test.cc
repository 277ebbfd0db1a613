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

// How often a new start that is `slower` by so much is outside the noise of as many starts, all of the same spread.
double PartCalledSlower(size_t starts, double spread, double slower) {
  std::mt19937 random(1);
  std::normal_distribution<double> chance(0, spread);
  int called = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double own = std::log(1 - slower) + chance(random);
    std::vector<double> ratios;
    for (size_t i = 0; i < starts; ++i) ratios.push_back(std::exp(own - chance(random)));
    called += RatioToStarts(ratios, StudentT95)->high < 1 ? 1 : 0;
  }
  return static_cast<double>(called) / kTrials;
}

TEST(BaselineTest, OneStartInFortyIsCalledSlowerWithoutBeing) {
  for (const size_t starts : {3u, 7u}) EXPECT_NEAR(PartCalledSlower(starts, 0.05, 0), 0.025, 0.01) << starts;
}

TEST(BaselineTest, WhatIsFoundDependsOnWhatTheStartsDifferBy) {
  EXPECT_GT(PartCalledSlower(7, 0.01, 0.06), 0.99);
  EXPECT_LT(PartCalledSlower(7, 0.05, 0.06), 0.3);
}

TEST(BaselineTest, TwoStartsDoNotTellWhatStartsDifferBy) {
  EXPECT_FALSE(RatioToStarts({0.9, 0.91}, StudentT95));
  Comparison comparison;
  comparison.speedup = 0.9, comparison.interval_known = true;
  HoldAgainstStarts({0.9, 0.91}, {}, comparison);
  EXPECT_FALSE(comparison.interval_known);
}

TEST(BaselineTest, AComparisonBecomesOneWithAllStarts) {
  Comparison comparison;
  HoldAgainstStarts({0.90, 0.91, 0.92}, {0.93, 0.94, 0.95}, comparison);
  EXPECT_EQ(comparison.starts, 3u);
  EXPECT_NEAR(comparison.speedup, 0.91, 1e-4);
  EXPECT_TRUE(comparison.significant);
  EXPECT_NEAR(comparison.undisturbed->value, 0.94, 1e-4);
  EXPECT_LT(comparison.undisturbed->low, 0.93);
}

TEST(BaselineTest, TwoFiguresAreAskedMoreOfThanOne) {
  Comparison one, both;
  HoldAgainstStarts({0.90, 0.91, 0.92, 0.93}, {}, one);
  HoldAgainstStarts({0.90, 0.91, 0.92, 0.93}, {0.93, 0.94, 0.95, 0.96}, both);
  EXPECT_NEAR(std::log(both.speedup_high / both.speedup) / std::log(one.speedup_high / one.speedup),
              4.177 / 3.182, 0.01);
}

std::optional<double> PaceOf(int64_t steps, const std::function<MadeStep(int64_t)>& shape) {
  const record::Recording run = MadeRun({MadeRank(0, steps, shape)});
  return UndisturbedPace(run, Diagnose(run));
}

// As neighbours do it who slow three of four steps.
TEST(BaselineTest, WhatDisturbsMostStepsIsNotInThePace) {
  const auto quiet = PaceOf(200, [](int64_t) { return MadeStep{.data_ms = 10}; });
  const auto loud = PaceOf(200, [](int64_t i) { return MadeStep{.data_ms = i % 4 == 0 ? 10 : 90}; });
  ASSERT_TRUE(quiet && loud);
  EXPECT_NEAR(*quiet, *loud, 1e-6 * *quiet);
}

TEST(BaselineTest, WhatEveryStepDoesIsInThePace) {
  const auto before = PaceOf(200, [](int64_t) { return MadeStep{.data_ms = 10}; });
  const auto after = PaceOf(200, [](int64_t) { return MadeStep{.data_ms = 20}; });
  ASSERT_TRUE(before && after);
  EXPECT_NEAR(*after / *before, 110.0 / 120, 1e-6);
}

TEST(BaselineTest, FewStepsHaveNoPace) {
  EXPECT_FALSE(PaceOf(60, [](int64_t) { return MadeStep{.data_ms = 10}; }));
}

}  // namespace
}  // namespace fullbore::diagnose
