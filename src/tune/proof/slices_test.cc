#include "tune/proof/slices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "explain/diagnose/statistics.h"

namespace fullbore::tune {
namespace {

std::vector<Slice> SlicesOf(const std::vector<double>& samples) {
  std::vector<Slice> slices;
  for (const double rate : samples) slices.push_back({0.2, 10, rate});
  return slices;
}

double HalfWidth(const Rate& rate) { return (rate.high - rate.low) / 2 / rate.mean; }

TEST(SlicesTest, ARateIsOfAllThatTheSlicesMade) {
  std::vector<Slice> uneven = SlicesOf({100, 100});
  uneven[1] = {0.6, 10, 50};
  const RatesInTurns rates = RatesOf(uneven, SlicesOf({100, 100}));
  EXPECT_DOUBLE_EQ(rates.before.mean * rates.after.mean, (100 * 0.2 + 50 * 0.6) / 0.8 * 100);
  EXPECT_DOUBLE_EQ(rates.after.mean / rates.before.mean, std::sqrt(2)) << "each slice counts the same";
  EXPECT_TRUE(rates.counts_samples);
}

TEST(SlicesTest, WhatSlowsBothDownMakesNoneOfThemUncertain) {
  // The machine's speed changes by half between two turns, and in both at once.
  const RatesInTurns rates = RatesOf(SlicesOf({100, 50, 75, 60}), SlicesOf({120, 60, 90, 72}));
  EXPECT_NEAR(rates.after.mean / rates.before.mean, 1.2, 1e-9);
  EXPECT_NEAR(HalfWidth(rates.before), 0, 1e-9);
}

TEST(SlicesTest, TheIntervalsAreThatOfTheRatio) {
  const RatesInTurns rates = RatesOf(SlicesOf({100, 100, 100, 100}), SlicesOf({110, 90, 110, 90}));
  // The smallest and the largest of four are left out, and so take the places of their neighbours for the error.
  const double half = (std::log(1.1) - std::log(0.9)) / 2;
  EXPECT_NEAR(std::hypot(HalfWidth(rates.before), HalfWidth(rates.after)),
              diagnose::StudentT95(1) * 2 * half * std::sqrt(4.0 / 3 / 4), 1e-9);
}

// A slice of so many samples/s whose undisturbed steps were so many times as fast.
struct Disturbed {
  double samples, undisturbed;
};
std::vector<Slice> SlicesOf(const std::vector<Disturbed>& disturbed) {
  std::vector<Slice> slices;
  for (const auto& [samples, undisturbed] : disturbed)
    slices.push_back({.seconds = 0.2, .steps = 10, .samples = samples, .undisturbed = undisturbed});
  return slices;
}

double RatioOf(const RatesInTurns& rates) { return rates.after.mean / rates.before.mean; }

TEST(SlicesTest, WhatDisturbsNowTheOneAndNowTheOtherDoesNotCount) {
  const auto before = SlicesOf({{100, 1}, {50, 2}, {100, 1}, {100, 1}, {40, 2.5}, {100, 1}});
  const auto after = SlicesOf({{55, 2}, {110, 1}, {110, 1}, {55, 2}, {110, 1}, {44, 2.5}});
  const RatesInTurns rates = RatesOf(before, after);
  EXPECT_NEAR(RatioOf(rates), 1.1, 0.02) << "and not 0.98, as the mean of all says";
  EXPECT_LT(HalfWidth(rates.before), 0.15) << "where the means alone leave 0.4";
}

TEST(SlicesTest, SlowStepsOfTheProgramsOwnCount) {
  // A step in some is slow: of the baseline alone, and in every slice.
  const auto before = SlicesOf({{80, 1.25}, {81, 1.24}, {79, 1.26}, {80, 1.25}, {82, 1.22}, {80, 1.25}});
  const RatesInTurns rates = RatesOf(before, SlicesOf({100, 100, 100, 100, 100, 100}));
  EXPECT_NEAR(RatioOf(rates), 1.25, 0.01);
  const auto both = SlicesOf({{80, 1.25}, {80, 1.25}, {80, 1.25}, {80, 1.25}, {80, 1.25}, {80, 1.25}});
  EXPECT_NEAR(RatioOf(RatesOf(both, both)), 1, 1e-9);
}

// The shares of pairs whose interval holds the true gain, and lies above 1.
struct Shares {
  double hold = 0, faster = 0;
};
constexpr int kPairs = 400, kSlices = 40;

void AddTo(Shares& shares, const RatesInTurns& rates, double truth) {
  const double half = std::hypot(HalfWidth(rates.before), HalfWidth(rates.after));
  const double log = std::log(RatioOf(rates));
  shares.hold += (std::abs(log - std::log(truth)) <= half) / static_cast<double>(kPairs);
  shares.faster += (log > half) / static_cast<double>(kPairs);
}

// Of a baseline that has a slow step of its own in a third of its slices, and a candidate that has none; neighbours slow
// down both now and then.
Shares OfOwnSlowSteps(double slow, double neighbours) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> chance;
  Shares shares;
  for (int pair = 0; pair < kPairs; ++pair) {
    const auto disturbed = [&](double own) {
      const double slower = own + (chance(random) < 0.3 ? neighbours * chance(random) : 0);
      return Disturbed{100 / (1 + slower), 1 + slower};
    };
    std::vector<Disturbed> before, after;
    for (int i = 0; i < kSlices; ++i) {
      before.push_back(disturbed(chance(random) < 1.0 / 3 ? slow : 0));
      after.push_back(disturbed(0));
    }
    AddTo(shares, RatesOf(SlicesOf(before), SlicesOf(after)), 1 + slow / 3);
  }
  return shares;
}

TEST(SlicesTest, SlowStepsThatAreHardToTellFromNeighboursAreNotDenied) {
  EXPECT_GE(OfOwnSlowSteps(0.3, 0).hold, 0.9);
  EXPECT_GE(OfOwnSlowSteps(0.3, 0.5).hold, 0.65)
      << "not 0.95: between what is told and what is taken for chance";
  EXPECT_GE(OfOwnSlowSteps(0.15, 0.5).hold, 0.65);
  EXPECT_GE(OfOwnSlowSteps(0.15, 1.5).hold, 0.9);
  EXPECT_GE(OfOwnSlowSteps(0, 1.5).hold, 0.94);
  EXPECT_LE(OfOwnSlowSteps(0, 1.5).faster, 0.025);
}

// Of five steps of 10 ms with some noise, and a pause of 50 ms in some slices: how often, by chance.
std::vector<Slice> SlicesWithPauses(double often, std::mt19937& random) {
  std::uniform_real_distribution<double> chance;
  std::normal_distribution<double> noise(1, 0.03);
  std::vector<Slice> slices;
  for (int i = 0; i < kSlices; ++i) {
    const double running = 0.05 * noise(random), paused = chance(random) < often ? 0.05 : 0;
    const double seconds = running + paused;
    slices.push_back(
        {.seconds = seconds, .steps = 5 / seconds, .samples = 5 / seconds, .paused = paused / seconds});
  }
  return slices;
}

Shares OfPauses(double often_before, double often_after) {
  std::mt19937 random(7);
  Shares shares;
  for (int pair = 0; pair < kPairs; ++pair)
    AddTo(shares, RatesOf(SlicesWithPauses(often_before, random), SlicesWithPauses(often_after, random)),
          (1 + often_before) / (1 + often_after));
  return shares;
}

TEST(SlicesTest, PausesCountHoweverFewSlicesHaveAny) {
  std::mt19937 random(7);
  std::vector<Slice> before = SlicesWithPauses(0, random), after = before;
  for (size_t i = 0; i < before.size(); i += 5) {
    const double seconds = before[i].seconds + 0.05;
    before[i] = {.seconds = seconds, .steps = 5 / seconds, .samples = 5 / seconds, .paused = 0.05 / seconds};
  }
  EXPECT_NEAR(RatioOf(RatesOf(before, after)), 1.2, 0.01) << "a trimmed mean of slices has none of them";
  EXPECT_GE(OfPauses(0.2, 0.05).hold, 0.92);
  EXPECT_GE(OfPauses(0.2, 0.05).faster, 0.45) << "of eight against two, by chance";
  EXPECT_GE(OfPauses(0.5, 0).hold, 0.92);
  EXPECT_GE(OfPauses(0.5, 0).faster, 0.95);
}

TEST(SlicesTest, AFewPausesThatOnlyOneOfTheTwoMetProveNothing) {
  EXPECT_LE(OfPauses(0.05, 0.05).faster, 0.025);
  EXPECT_GE(OfPauses(0.05, 0.05).hold, 0.95);
  EXPECT_GE(OfPauses(0.02, 0.02).hold, 0.95);
  EXPECT_GE(OfPauses(0.03, 0).hold, 0.65) << "where the baseline's pauses never came, nothing knows of them";
}

// A sample of its own now and then that takes long to load, in so many of its slices.
Shares OfSlowSlices(double slow, double often) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> chance;
  std::normal_distribution<double> noise(1, 0.03);
  Shares shares;
  for (int pair = 0; pair < kPairs; ++pair) {
    std::vector<double> before, after;
    for (int i = 0; i < kSlices; ++i) {
      before.push_back(100 * noise(random) / (1 + (chance(random) < often ? slow : 0)));
      after.push_back(100 * noise(random));
    }
    AddTo(shares, RatesOf(SlicesOf(before), SlicesOf(after)), 1 + slow * often);
  }
  return shares;
}

TEST(SlicesTest, SlowSlicesOfTheProgramsOwnCountToo) {
  EXPECT_GE(OfSlowSlices(0.5, 0.2).faster, 0.7) << "a trimmed mean of slices has none of them";
  EXPECT_GE(OfSlowSlices(0, 0).hold, 0.94);
}

TEST(SlicesTest, CountsStepsOfBothWhereOneSliceKnowsNoSamples) {
  std::vector<Slice> after = SlicesOf({320, 320, 320});
  after[1].samples = 0;
  const RatesInTurns rates = RatesOf(SlicesOf({320, 320, 320}), after);
  EXPECT_FALSE(rates.counts_samples);
  EXPECT_DOUBLE_EQ(rates.before.mean, 10);
  EXPECT_DOUBLE_EQ(rates.after.mean, 10);
  EXPECT_NEAR(HalfWidth(rates.after), 0, 1e-9);
}

std::vector<Slice> SlicesWithBursts(const std::vector<double>& bursts) {
  std::vector<Slice> slices;
  for (const double burst : bursts) slices.push_back({0.8, 10, 80, 0.2, burst});
  return slices;
}

constexpr Warm kBefore = {10, 0.2};

TEST(SlicesTest, WhatIsFasterAtTheBeginningOfItsSlicesGoesOnWhileItStands) {
  const auto why = WhatWentOn(SlicesWithBursts({1.2, 1.3, 1.25, 1.2}), kBefore);
  ASSERT_TRUE(why);
  EXPECT_EQ(
      *why,
      "is 24 % faster at the beginning of its slices than at their end: it goes on working while it is stopped");
  EXPECT_FALSE(WhatWentOn(SlicesWithBursts({1.4, 0.8, 1.2, 0.9}), kBefore)) << "noise";
  EXPECT_FALSE(WhatWentOn(SlicesWithBursts({1.01, 1.01, 1.01, 1.01}), kBefore)) << "bends nothing";
  EXPECT_FALSE(WhatWentOn(SlicesWithBursts({0.8, 0.8, 0.8, 0.8}), kBefore)) << "cold caches";
}

TEST(SlicesTest, NoiseIsHardlyEverTakenForABurstInAnyOfEightPairs) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.1);
  constexpr int kContests = 500;
  int refused = 0;
  for (int contest = 0; contest < kContests; ++contest) {
    bool is_refused = false;
    for (int program = 0; program < 16; ++program) {
      std::vector<double> bursts(5 + program);
      for (double& burst : bursts) burst = std::exp(noise(random));
      is_refused = is_refused || WhatWentOn(SlicesWithBursts(bursts), kBefore).has_value();
    }
    refused += is_refused ? 1 : 0;
  }
  EXPECT_LT(refused, kContests / 25);
}

TEST(SlicesTest, WhatIsFasterInSlicesThanBeforeGoesOnWhileItStands) {
  const std::vector<Slice> slices = SlicesWithBursts({1, 1, 1, 1});
  EXPECT_EQ(
      WhatWentOn(slices, {7, 0.2}),
      "is 43 % faster in slices than it was before: something of it goes on working while it is stopped");
  EXPECT_FALSE(WhatWentOn(slices, {8.5, 0.2})) << "in its first seconds";
  EXPECT_FALSE(WhatWentOn(slices, {20, 0.2})) << "slower, as beside a neighbour";
}

TEST(SlicesTest, WhatWaitsLessInSlicesThanBeforeIsFedWhileItStands) {
  const std::vector<Slice> slices = SlicesWithBursts({1, 1, 1, 1});
  EXPECT_EQ(
      WhatWentOn(slices, {10, 0.5}),
      "waits for data 20 % of its slices and 50 % of the time before: what it waits for goes on while it is stopped");
  EXPECT_FALSE(WhatWentOn(slices, {10, 0.24}));
  std::vector<Slice> uneven = slices;
  for (size_t i = 0; i < uneven.size(); ++i) uneven[i].waited = i % 2 == 0 ? 0.1 : 0.3;
  EXPECT_FALSE(WhatWentOn(uneven, {10, 0.3})) << "as a loader whose samples now and then are slow";
  EXPECT_TRUE(WhatWentOn(uneven, {10, 0.6}));
  EXPECT_FALSE(WhatWentOn(slices, {10, 0})) << "more, as beside a neighbour who takes a worker's core";
}

TEST(SlicesTest, APairGoesOnForAsLongAsThatTellsMostInTheSameTime) {
  constexpr double kBetweenStarts = 0.04;
  for (const double begin_seconds : {2.0, 6.0, 15.0}) {
    for (const double one_second : {0.01, 0.1, 0.3}) {  // the error after it
      const auto variance = [&](double seconds) {
        return (std::pow(kBetweenStarts, 2) + std::pow(one_second, 2) / seconds) * (begin_seconds + seconds);
      };
      double seconds = 0.01;
      while (!AnotherTellsMore(one_second / std::sqrt(seconds), seconds, begin_seconds)) seconds *= 1.01;
      EXPECT_LT(variance(seconds), variance(0.9 * seconds));
      EXPECT_LT(variance(seconds), variance(1.1 * seconds));
    }
  }
}

TEST(SlicesTest, ThereIsTimeForFivePairsAndTheEnd) {
  double left_seconds = 60;
  for (size_t pair = 0; pair < 5; ++pair) {
    const double share = ShareOfPair(left_seconds, pair);
    EXPECT_GT(share, 9) << pair;
    left_seconds -= share;
  }
  EXPECT_NEAR(left_seconds, 2, 1);
  EXPECT_NEAR(ShareOfPair(left_seconds, 7), left_seconds / 1.2, 1e-9);
}

}  // namespace
}  // namespace fullbore::tune
