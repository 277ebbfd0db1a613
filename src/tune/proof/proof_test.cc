#include "tune/proof/proof.h"

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

TEST(ProofTest, SaysWhatItKnows) {
  EXPECT_EQ(GainText({1.67, 1.61, 1.724}), "1.67x (1.61 to 1.72)");
  EXPECT_EQ(GainText({1.67, 0.3, 9.3}, " at 95 %"), "1.67x (0.30 to 9.30 at 95 %)");
  EXPECT_EQ(GainText({1.46, 0, 1e36}), "1.46x (the pairs differ too much to tell)");
}

TEST(ProofTest, SaysHowThePairsWereMade) {
  Proof proof = Of({{100, 150}});
  EXPECT_EQ(PairsText(proof), "one pair of trials, whole runs in turns");
  proof.Add({About(100), About(150), /*in_slices=*/true});
  EXPECT_EQ(PairsText(proof), "2 pairs of trials, 1 of them slices of both in turns, the others whole runs");
  proof.pairs.erase(proof.pairs.begin());
  proof.Add({About(100), About(150), /*in_slices=*/true});
  EXPECT_EQ(PairsText(proof), "2 pairs of trials, slices of both in turns");
  EXPECT_EQ(PairsText(Proof{}), "0 pairs of trials");
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
  const auto gain = proof.gain();
  EXPECT_LT(gain->low, 0.6);
  EXPECT_GT(gain->high, 2);
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

TEST(ProofTest, SaysHowManyPairsLikeTheseWouldTell) {
  const Proof open = Of({{100, 110}, {100, 130}});
  ASSERT_EQ(open.verdict, Verdict::kOpen);
  const auto pairs = open.pairs_to_tell(1);
  ASSERT_TRUE(pairs.has_value());
  EXPECT_GT(*pairs, 2u);
  EXPECT_EQ(Of({{100, 150}, {101, 151}}).pairs_to_tell(1), 2u) << "these do";
  EXPECT_FALSE(Of({{100, 90}, {100, 115}}).pairs_to_tell(1).has_value()) << "about none, in much noise";
  EXPECT_FALSE(Of({{100, 110}}).pairs_to_tell(1).has_value()) << "one says nothing of its noise";
}

TEST(ProofTest, ThePairsAreMadeInTurns) {
  std::string order;
  const auto make = [&](bool as_it_is) {
    order += as_it_is ? 'A' : 'B';
    Trial trial;
    trial.rate = About(as_it_is ? 1 : 2);
    return std::optional(trial);
  };
  for (const size_t earlier : {0, 1, 2}) {
    const auto pair = MakePair(earlier, make);
    ASSERT_TRUE(pair.has_value());
    EXPECT_EQ(pair->before.rate->mean, 1);
    EXPECT_EQ(pair->after.rate->mean, 2);
  }
  EXPECT_EQ(order, "ABBAAB");
  EXPECT_FALSE(MakePair(0, [](bool) { return std::optional<Trial>(); }).has_value());
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
        const auto trial = [&] { return About(std::max(1.0, rate(random)), 1.96 * noise * 100); };
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
