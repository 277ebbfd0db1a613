#include "explain/diagnose/share_noise.h"

#include <gtest/gtest.h>

#include "explain/diagnose/compare.h"
#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/testing/made_run.h"

namespace fullbore::diagnose {
namespace {

using testing::MadeRank;
using testing::MadeRun;
using testing::MadeStep;

// Waits for data so long in steps of 100 ms besides; by turns some milliseconds more and less.
record::Recording Waiting(int64_t data_ms, int64_t by_turns_ms, int64_t steps = 200) {
  return MadeRun({MadeRank(0, steps, [=](int64_t i) {
    return MadeStep{.data_ms = data_ms + (i * 7 % 11 < 5 ? by_turns_ms : -by_turns_ms)};
  })});
}

ShareMoves Moves(const record::Recording& before, const record::Recording& after) {
  return ShareMovesOf(Diagnose(before), ShareNoiseOf(before), Diagnose(after), ShareNoiseOf(after));
}

TEST(ShareNoiseTest, AShareThatGrewByMoreThanItsNoiseHasMoved) {
  const ShareMove move = Moves(Waiting(20, 2), Waiting(30, 2)).at("data_wait");
  EXPECT_TRUE(move.IsMoreThanNoise());
  EXPECT_LT(move.low, 30.0 / 130 - 20.0 / 120);
  EXPECT_GT(move.high, 30.0 / 130 - 20.0 / 120);
}

TEST(ShareNoiseTest, WhatDiffersByLessThanItVariesHasNot) {
  EXPECT_FALSE(Moves(Waiting(40, 39), Waiting(41, 39)).at("data_wait").IsMoreThanNoise());
  EXPECT_FALSE(Moves(Waiting(20, 2), Waiting(20, 2)).at("data_wait").IsMoreThanNoise());
}

TEST(ShareNoiseTest, WhatTwoStartsOfOneProgramDifferByIsNoise) {
  EXPECT_FALSE(Moves(Waiting(20, 0), Waiting(21, 0)).at("data_wait").IsMoreThanNoise());
  EXPECT_TRUE(Moves(Waiting(20, 0), Waiting(24, 0)).at("data_wait").IsMoreThanNoise());
}

TEST(ShareNoiseTest, AShareThatNeitherHasDidNotMove) {
  EXPECT_FALSE(Moves(Waiting(20, 2), Waiting(30, 2)).at("comm_exposed").IsMoreThanNoise());
}

TEST(ShareNoiseTest, AFewStepsSayNothing) {
  EXPECT_FALSE(ShareNoiseOf(Waiting(20, 2, 8)));
  EXPECT_TRUE(Moves(Waiting(20, 2, 8), Waiting(30, 2)).empty());
  EXPECT_FALSE(ShareNoiseOf(record::Recording()));
}

TEST(ShareNoiseTest, AComparisonSaysOfEachShareWhetherItMoved) {
  const auto before = Waiting(20, 2), after = Waiting(30, 2);
  const auto change = Compare(Diagnose(before), Diagnose(after), Moves(before, after)).shares.at(0);
  EXPECT_EQ(change.what, "data_wait");
  ASSERT_TRUE(change.move);
  EXPECT_TRUE(change.move->IsMoreThanNoise());
  EXPECT_FALSE(Compare(Diagnose(before), Diagnose(after)).shares.at(0).move) << "not known";
}

}  // namespace
}  // namespace fullbore::diagnose
