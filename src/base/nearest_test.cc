#include "base/nearest.h"

#include <gtest/gtest.h>

namespace fullbore {
namespace {

const std::vector<std::string> kFindings = {"input-bound",     "copy-bound",  "comm-bound",
                                            "no-tensor-cores", "small-batch", "uneven-last-batch"};

TEST(NearestTest, DistanceCountsInsertedDroppedChangedAndSwappedLetters) {
  EXPECT_EQ(EditDistance("explain", "explain"), 0U);
  EXPECT_EQ(EditDistance("explan", "explain"), 1U);
  EXPECT_EQ(EditDistance("explaiin", "explain"), 1U);
  EXPECT_EQ(EditDistance("exploin", "explain"), 1U);
  EXPECT_EQ(EditDistance("explian", "explain"), 1U);
  EXPECT_EQ(EditDistance("", "run"), 3U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
}

TEST(NearestTest, AMistypedWordIsRecognised) {
  EXPECT_EQ(Nearest("input-buond", kFindings), "input-bound");
  EXPECT_EQ(Nearest("coppy-bound", kFindings), "copy-bound");
  EXPECT_EQ(Nearest("rnu", {"run", "runs"}), "run");
}

TEST(NearestTest, TheOnlyNameThatContainsTheWordIsMeant) {
  EXPECT_EQ(Nearest("tensor", kFindings), "no-tensor-cores");
  EXPECT_EQ(Nearest("batch", kFindings), std::nullopt);  // two names contain it
  EXPECT_EQ(Nearest("no", kFindings), std::nullopt);     // too short to tell
}

TEST(NearestTest, WhatResemblesNothingIsNotGuessed) {
  EXPECT_EQ(Nearest("frobnicate", kFindings), std::nullopt);
  EXPECT_EQ(Nearest("", kFindings), std::nullopt);
  EXPECT_EQ(Nearest("input-bound", {}), std::nullopt);
  EXPECT_EQ(Nearest(std::string(100'000, 'x'), {std::string(100'000, 'x')}), std::nullopt);
}

}  // namespace
}  // namespace fullbore
