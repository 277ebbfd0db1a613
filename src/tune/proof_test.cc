#include "tune/proof.h"

#include <gtest/gtest.h>

#include <random>

namespace fullbore::tune {
namespace {

Rate About(double mean, double half = 0) { return {mean, mean - half, mean + half}; }

Proof Of(const std::vector<std::pair<double, double>>& pairs) {
  Proof proof;
  for (const auto& [before, after] : pairs) proof.Add({About(before), About(after)});
  return proof;
}

TEST(ProofTest, OnePairProvesNothing) {
  const Proof proof = Of({{100, 300}});
  EXPECT_EQ(proof.verdict, Verdict::kOpen);
  EXPECT_FALSE(proof.gain().has_value());
}

TEST(ProofTest, TwoPairsThatAgreeProveALargeGain) {
  const Proof proof = Of({{100, 150}, {101, 151}});
  EXPECT_EQ(proof.verdict, Verdict::kFaster);
  EXPECT_NEAR(proof.gain()->expected, 1.5, 0.01);
  EXPECT_GT(proof.gain()->low, 1);
}

TEST(ProofTest, TheSameGainIsOpenWhereThePairsDiffer) {
  const Proof proof = Of({{100, 150}, {130, 150}});
  EXPECT_EQ(proof.verdict, Verdict::kOpen);
  EXPECT_LT(proof.gain()->low, 1);
}

TEST(ProofTest, PairsThatAgreeByChanceAreNotKnownBetterThanTheirTrials) {
  Proof proof;
  for (int i = 0; i < 2; ++i) proof.Add({About(100, 5), About(110, 5)});
  EXPECT_EQ(proof.verdict, Verdict::kOpen);
}

TEST(ProofTest, WhatIsSlowerIsRefuted) {
  const Proof proof = Of({{300, 250}, {299, 251}, {301, 252}});
  EXPECT_EQ(proof.verdict, Verdict::kNoGain);
  EXPECT_FALSE(proof.recommends());
}

TEST(ProofTest, WhatAsksForLessIsWorthItAtTheSameSpeed) {
  Proof proof;
  proof.asks_for_less = true;
  for (int i = 0; i < 3; ++i) proof.Add({About(100 + 0.1 * i), About(99)});
  EXPECT_EQ(proof.verdict, Verdict::kAsFast);
  EXPECT_TRUE(proof.recommends());
  proof = {};
  for (int i = 0; i < 3; ++i) proof.Add({About(100 + 0.1 * i), About(99)});
  EXPECT_EQ(proof.verdict, Verdict::kNoGain) << "a change that brings nothing";
}

TEST(ProofTest, ClaimsHardlyEverAGainThatIsNone) {
  constexpr int kProofs = 4000;
  for (const double noise : {0.01, 0.05, 0.2}) {
    std::mt19937 random(7);
    std::normal_distribution<double> rate(100, 100 * noise);
    int claimed = 0;
    for (int i = 0; i < kProofs; ++i) {
      Proof proof;
      while (proof.pairs.size() < kMostPairs && proof.verdict == Verdict::kOpen) {
        const auto trial = [&] { return About(std::max(1.0, rate(random)), noise * 100); };
        proof.Add({trial(), trial()});
      }
      claimed += proof.verdict == Verdict::kFaster;
    }
    EXPECT_LE(claimed, kProofs / 100) << noise;
  }
}

TEST(ProofTest, FindsAGainThatIsWellAboveTheNoise) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(1, 0.03);
  int found = 0;
  for (int i = 0; i < 400; ++i) {
    Proof proof;
    while (proof.pairs.size() < kMostPairs && proof.verdict == Verdict::kOpen)
      proof.Add({About(100 * noise(random), 3), About(120 * noise(random), 3)});
    found += proof.verdict == Verdict::kFaster;
  }
  EXPECT_GE(found, 396);
}

}  // namespace
}  // namespace fullbore::tune
