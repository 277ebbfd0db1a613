#include "explain/diagnose/statistics.h"

#include <gtest/gtest.h>

#include <random>

namespace fullbore::diagnose {
namespace {

// Step times with 5 % noise around 100, the first `slow` of them around 100 * `factor`.
std::vector<double> Steps(size_t n, size_t slow, double factor) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(1.0, 0.05);
  std::vector<double> steps;
  for (size_t i = 0; i < n; ++i)
    steps.push_back(100 * (i < slow ? factor : 1) * std::max(0.5, noise(random)));
  return steps;
}

TEST(WarmupTest, ASteadyRunHasNone) { EXPECT_EQ(WarmupSteps(Steps(200, 0, 1), 100), 0u); }

TEST(WarmupTest, OneSlowFirstStepIsWarmup) { EXPECT_EQ(WarmupSteps(Steps(200, 1, 20), 100), 1u); }

TEST(WarmupTest, ALongSlowStartIsFoundToTheStep) {
  EXPECT_NEAR(static_cast<double>(WarmupSteps(Steps(200, 40, 1.6), 100)), 40, 1);
}

TEST(WarmupTest, TwoLevelsOfSlowStartAreBothWarmup) {
  std::vector<double> steps = Steps(200, 30, 1.5);
  steps[0] *= 20;
  EXPECT_NEAR(static_cast<double>(WarmupSteps(steps, 100)), 30, 1);
}

TEST(WarmupTest, ASlowStepInTheMiddleIsNoWarmup) {
  std::vector<double> steps = Steps(200, 0, 1);
  for (size_t i = 9; i < 200; i += 10) steps[i] *= 8;  // a checkpoint every ten steps
  EXPECT_EQ(WarmupSteps(steps, 100), 0u);
}

TEST(WarmupTest, SlownessBeyondTheFirstHalfIsHowTheRunIs) {
  EXPECT_LE(WarmupSteps(Steps(100, 70, 2), 100), 1u);
}

TEST(WarmupTest, AChangeOfTheRunLaterOnHidesNoSlowStart) {
  std::vector<double> steps = Steps(200, 30, 1.6);
  for (size_t i = 130; i < 200; ++i) steps[i] /= 2;
  EXPECT_NEAR(static_cast<double>(WarmupSteps(steps, 100)), 30, 1);
}

TEST(WarmupTest, IsNeverLongerThanItsLimit) {
  EXPECT_LE(WarmupSteps(Steps(200, 60, 1.6), 40), 40u);
  EXPECT_NEAR(static_cast<double>(WarmupSteps(Steps(200, 30, 1.6), 40)), 30, 1);
}

TEST(WarmupTest, OfFiveStepsTheFirstIsWarmupWhereItAloneIsSlow) {
  EXPECT_EQ(WarmupSteps({1900, 20, 24, 21, 20}, 100), 1u);
  EXPECT_EQ(WarmupSteps({20, 20, 24, 21, 20}, 100), 0u);
}

TEST(WarmupTest, VeryShortRunsAreTakenAsTheyAre) {
  EXPECT_EQ(WarmupSteps({}, 100), 0u);
  EXPECT_EQ(WarmupSteps({5}, 100), 0u);
  EXPECT_LE(WarmupSteps({50, 5, 5}, 100), 1u);
}

TEST(RatioIntervalTest, HoldsTheTrueRateInAboutNineteenOfTwentyRuns) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(1.0, 0.2);
  int held = 0;
  for (int run = 0; run < 400; ++run) {
    std::vector<double> samples(100, 32), seconds;
    for (int i = 0; i < 100; ++i) seconds.push_back(0.1 * std::max(0.1, noise(random)));
    const auto interval = RatioInterval(samples, seconds);
    ASSERT_TRUE(interval.has_value());
    held += interval->low <= 320 && 320 <= interval->high;
  }
  EXPECT_GT(held, 360);
  EXPECT_LT(held, 400);
}

TEST(RatioIntervalTest, SaysNothingOfAFewSteps) {
  EXPECT_FALSE(RatioInterval({1, 2, 3}, {1, 1, 1}).has_value());
}

TEST(LineTest, GoesThroughItsPoints) {
  std::vector<double> x, y, falling, noisy;
  for (int i = 0; i < 40; ++i) {
    x.push_back(i);
    y.push_back(7 + 3 * i);
    falling.push_back(-2 * i);
    noisy.push_back(3 * i + (i % 2 ? 40 : -40));
  }
  EXPECT_NEAR(LineThrough(x, y)->slope, 3, 1e-9);
  EXPECT_NEAR(LineThrough(x, y)->correlation, 1, 1e-9);
  EXPECT_NEAR(LineThrough(x, falling)->correlation, -1, 1e-9);
  EXPECT_NEAR(LineThrough(x, noisy)->slope, 3, 0.3);
  EXPECT_NEAR(LineThrough(x, noisy)->correlation, 0.67, 0.03);
}

TEST(LineTest, IsNothingForFewPointsAndForOnesAboveEachOther) {
  EXPECT_FALSE(LineThrough({1, 2, 3}, {1, 2, 3}).has_value());
  EXPECT_FALSE(LineThrough(std::vector<double>(20, 5), std::vector<double>(20, 1)).has_value());
}

TEST(StudentTest, AgreesWithTheTables) {
  EXPECT_NEAR(StudentT95(3), 3.182, 0.03);
  EXPECT_NEAR(StudentT95(9), 2.262, 0.005);
  EXPECT_NEAR(StudentT95(19), 2.093, 0.005);
  EXPECT_NEAR(StudentT95(1000), 1.962, 0.002);
  EXPECT_NEAR(StudentT975(4), 3.495, 0.03);
  EXPECT_NEAR(StudentT975(6), 2.969, 0.01);
  EXPECT_NEAR(StudentT975(19), 2.433, 0.005);
}

TEST(QuantileTest, InterpolatesBetweenNeighbours) {
  EXPECT_EQ(Median({1, 2, 3, 4}), 2.5);
  EXPECT_EQ(Quantile({10, 20}, 1), 20);
  EXPECT_EQ(Median({}), 0);
}

}  // namespace
}  // namespace fullbore::diagnose
