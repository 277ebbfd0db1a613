#include "explain/diagnose/tokens.h"

#include <gtest/gtest.h>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using testing::ARun;
using testing::ATraining;

std::optional<Tokens> TokensOfA(const char* fact) {
  ARun run = ATraining();
  run.rank().facts["tokens"] = fact;
  const record::Recording recording = run;
  return TokensOf(View(recording, recording.stages.front()));
}

TEST(TokensTest, AreReadPerSample) {
  const auto tokens = TokensOfA(
      R"({"batches": 4, "rows": 32, "computed": [3200, 320000], "useful": 800, "longest": [1600, 80000], "widths": 1,
          "lengths": [10, 20, 30, 40, 50], "told_by": "ends", "follows": 0.9})");
  ASSERT_TRUE(tokens.has_value());
  EXPECT_EQ(tokens->computed.tokens, 100);
  EXPECT_EQ(tokens->computed.squares, 10'000);
  EXPECT_EQ(tokens->useful, 25);
  EXPECT_EQ(tokens->longest.tokens, 50);
  EXPECT_EQ(tokens->Padding(), 0.75);
  EXPECT_EQ(tokens->follows, 0.9);
  EXPECT_EQ(tokens->told_by, "ends");
}

TEST(TokensTest, SortedBatchesAreAsWideAsTheLongestOfTheirPart) {
  const auto tokens = TokensOfA(
      R"({"batches": 4, "rows": 32, "computed": [3200, 320000], "useful": 960, "longest": [1600, 80000], "widths": 1,
          "lengths": [10, 20, 30, 40, 50], "told_by": "ends"})");
  ASSERT_TRUE(tokens.has_value());
  EXPECT_EQ(tokens->Grouped(4).tokens, (20 + 30 + 40 + 50) / 4.0);
  EXPECT_EQ(tokens->Grouped(4).squares, (400 + 900 + 1600 + 2500) / 4.0);
  EXPECT_EQ(tokens->Grouped(2).tokens, (30 + 50) / 2.0);
  EXPECT_EQ(tokens->Grouped(1).tokens, 50) << "all in one batch";
  EXPECT_EQ(tokens->Packed().tokens, 30);
  EXPECT_EQ(tokens->Packed().squares, (200 + 600 + 1200 + 2000) / 4.0);
  EXPECT_FALSE(tokens->follows.has_value());
}

TEST(TokensTest, AreNothingWhereTheyAreNotPlausible) {
  EXPECT_FALSE(TokensOfA("{}").has_value());
  EXPECT_FALSE(TokensOfA("[1]").has_value());
  EXPECT_FALSE(TokensOfA("{").has_value());
  EXPECT_FALSE(
      TokensOfA(R"({"batches": 4, "rows": 32, "computed": [800, 800], "useful": 1600, "longest": [1600, 1600],
                             "widths": 1, "lengths": [10, 20]})")
          .has_value())
      << "more than are computed";
  EXPECT_FALSE(
      TokensOfA(R"({"batches": 4, "rows": 32, "computed": [800, 800], "useful": 200, "longest": [400, 400],
                             "widths": 1, "lengths": [20, 10]})")
          .has_value())
      << "lengths that fall";
  EXPECT_FALSE(
      TokensOfA(R"({"batches": "4", "rows": null, "computed": 1e400, "lengths": "none"})").has_value());
}

TEST(TokensTest, OfASampleAreKnownWithoutKnowingWhichArePadding) {
  const auto of = [](const char* fact) {
    ARun run = ATraining();
    run.rank().facts["tokens"] = fact;
    const record::Recording recording = run;
    return SampleTokensOf(View(recording, recording.stages.front()));
  };
  const auto sized =
      of(R"({"batches": 4, "rows": 32, "computed": [3200, 320000], "widths": 1, "follows": 0.9})");
  ASSERT_TRUE(sized.has_value());
  EXPECT_EQ(sized->computed, 100);
  EXPECT_FALSE(sized->useful.has_value());
  const auto told = of(
      R"({"batches": 4, "rows": 32, "computed": [3200, 320000], "useful": 800, "longest": [1600, 80000], "widths": 1,
          "lengths": [10, 20, 30, 40, 50], "told_by": "ends", "follows": 0.9})");
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->useful, 25);
  EXPECT_FALSE(of(R"({"batches": 4, "rows": 32, "computed": [3200, 320000], "widths": 1})").has_value())
      << "what is computed for them is not known";
  EXPECT_FALSE(
      of(R"({"batches": 4, "rows": 32, "computed": [3200, 320000], "widths": 1, "follows": 0})").has_value())
      << "nothing is computed for them";
  EXPECT_FALSE(of(R"({"rows": 0, "computed": [3200, 1], "follows": 1})").has_value());
  EXPECT_FALSE(of(R"({"rows": 3, "computed": "many", "follows": 1})").has_value());
}

TEST(TokensTest, AreARateBesideThatOfSamples) {
  ARun run = ATraining();
  EXPECT_FALSE(Diagnose(run).tokens_per_s.has_value());
  run.rank().facts["tokens"] =
      R"({"batches": 4, "rows": 32, "computed": [3200, 320000], "useful": 800, "longest": [1600, 80000], "widths": 1,
          "lengths": [10, 20, 30, 40, 50], "told_by": "ends", "follows": 0.9})";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_TRUE(diagnosis.tokens_per_s && diagnosis.useful_tokens_per_s && diagnosis.samples_per_s);
  EXPECT_DOUBLE_EQ(*diagnosis.tokens_per_s, 100 * *diagnosis.samples_per_s);
  EXPECT_DOUBLE_EQ(*diagnosis.useful_tokens_per_s, 25 * *diagnosis.samples_per_s);
}

TEST(TokensTest, FiftyBatchesAreSortedOrAQuarterOfAll) {
  EXPECT_EQ(BatchesSorted(std::nullopt, 8), 50);
  EXPECT_EQ(BatchesSorted(1'000'000, 8), 50);
  EXPECT_EQ(BatchesSorted(320, 8), 10);
  EXPECT_EQ(BatchesSorted(10, 8), 1);
}

}  // namespace
}  // namespace fullbore::diagnose
