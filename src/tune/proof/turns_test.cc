#include "tune/proof/turns.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fullbore::tune {
namespace {

std::vector<Slice> SlicesOf(const std::vector<double>& samples) {
  std::vector<Slice> slices;
  for (const double rate : samples) slices.push_back({0.2, 10, rate});
  return slices;
}

double HalfWidth(const Rate& rate) { return (rate.high - rate.low) / 2 / rate.mean; }

TEST(TurnsTest, ARateIsOfAllThatTheSlicesMade) {
  std::vector<Slice> uneven = SlicesOf({100, 100});
  uneven[1] = {0.6, 10, 50};
  const RatesInTurns rates = RatesOf(uneven, SlicesOf({100, 100}));
  EXPECT_DOUBLE_EQ(rates.before.mean, (100 * 0.2 + 50 * 0.6) / 0.8);
  EXPECT_DOUBLE_EQ(rates.after.mean, 100);
  EXPECT_TRUE(rates.counts_samples);
}

TEST(TurnsTest, WhatSlowsBothDownMakesNoneOfThemUncertain) {
  // The machine's speed changes by half between two turns, and in both at once.
  const RatesInTurns rates = RatesOf(SlicesOf({100, 50, 75, 60}), SlicesOf({120, 60, 90, 72}));
  EXPECT_NEAR(rates.after.mean / rates.before.mean, 1.2, 1e-9);
  EXPECT_NEAR(HalfWidth(rates.before), 0, 1e-9);
}

TEST(TurnsTest, TheIntervalsAreThatOfTheRatio) {
  const RatesInTurns rates = RatesOf(SlicesOf({100, 100, 100, 100}), SlicesOf({110, 90, 110, 90}));
  double squares = 0, mean = (std::log(1.1) + std::log(0.9)) / 2;
  for (const double ratio : {1.1, 0.9, 1.1, 0.9}) squares += std::pow(std::log(ratio) - mean, 2);
  EXPECT_NEAR(std::hypot(HalfWidth(rates.before), HalfWidth(rates.after)), 1.96 * std::sqrt(squares / 3 / 4),
              1e-9);
}

TEST(TurnsTest, CountsStepsOfBothWhereOneSliceKnowsNoSamples) {
  std::vector<Slice> after = SlicesOf({320, 320, 320});
  after[1].samples = 0;
  const RatesInTurns rates = RatesOf(SlicesOf({320, 320, 320}), after);
  EXPECT_FALSE(rates.counts_samples);
  EXPECT_DOUBLE_EQ(rates.before.mean, 10);
  EXPECT_DOUBLE_EQ(rates.after.mean, 10);
  EXPECT_NEAR(HalfWidth(rates.after), 0, 1e-9);
}

}  // namespace
}  // namespace fullbore::tune
