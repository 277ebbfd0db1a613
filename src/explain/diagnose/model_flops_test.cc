#include "explain/diagnose/model_flops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using testing::ARun;
using testing::ATraining;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Optional;

constexpr char kH100[] = "cuda:0 (NVIDIA H100 80GB HBM3)";

struct Facts {
  std::string flops = R"({"step": 2e13, "unknown": []})", device = kH100, precision = "bfloat16",
              tf32 = "false", tokens = "";
};

std::optional<ModelFlops> Of(const Facts& facts, double steps_per_s = 20) {
  ARun run = ATraining();
  run.rank().facts["flops"] = facts.flops;
  run.rank().facts["device"] = facts.device;
  run.rank().facts["precision"] = facts.precision;
  run.rank().facts["tf32_matmul"] = facts.tf32;
  if (!facts.tokens.empty()) run.rank().facts["tokens"] = facts.tokens;
  const record::Recording recording = run;
  return ModelFlopsOf(View(recording, recording.stages.front()), steps_per_s);
}

TEST(ModelFlopsTest, AreThoseOfAStepTimesItsRateOverThePeakOfTheType) {
  const auto flops = Of({});
  ASSERT_TRUE(flops.has_value());
  EXPECT_DOUBLE_EQ(flops->per_s, 4e14);
  EXPECT_THAT(flops->mfu, Optional(DoubleNear(4e14 / 989.4e12, 0.001)));
  EXPECT_EQ(flops->peak, "H100 SXM in bfloat16");
}

TEST(ModelFlopsTest, Float32IsMeasuredAgainstTf32WhereThatIsAllowed) {
  EXPECT_EQ(Of({.precision = "float32"})->peak, "H100 SXM in float32");
  EXPECT_EQ(Of({.precision = "float32", .tf32 = "true"})->peak, "H100 SXM in TF32");
  EXPECT_GT(*Of({.precision = "float32"})->mfu, *Of({.precision = "float32", .tf32 = "true"})->mfu);
}

TEST(ModelFlopsTest, TheTypeOfTheProductsGoesBeforeThatOfTheWeights) {
  const auto sharded =
      Of({.flops = R"({"step": 2e13, "unknown": [], "type": "bfloat16"})", .precision = "float32"});
  ASSERT_TRUE(sharded.has_value());
  EXPECT_EQ(sharded->peak, "H100 SXM in bfloat16");
}

TEST(ModelFlopsTest, WhatIsComputedAgainIsNotTheModels) {
  const auto flops = Of({.flops = R"({"step": 8e12, "unknown": [], "backward": 4e12, "again": 2e12})"});
  ASSERT_TRUE(flops.has_value());
  EXPECT_DOUBLE_EQ(flops->per_s, 20 * 6e12);
}

TEST(ModelFlopsTest, ItIsSaidWhyNothingWasCounted) {
  ARun run = ATraining();
  run.rank().facts["flops"] = R"({"why": "a compiled graph cannot be read"})";
  const record::Recording recording = run;
  EXPECT_EQ(Diagnose(recording).flops, std::nullopt);
  const auto is_of_flops = [](const NotJudged& one) { return one.why == "a compiled graph cannot be read"; };
  EXPECT_TRUE(std::ranges::any_of(Diagnose(recording).not_judged, is_of_flops));
}

TEST(ModelFlopsTest, APeakThatIsNotKnownLeavesTheFlops) {
  for (const char* device : {"cpu", "cuda:0 (NVIDIA H100 80GB HBM3 MIG 1g.10gb)", "cuda:0 (Another One)"}) {
    const auto flops = Of({.device = device});
    ASSERT_TRUE(flops.has_value()) << device;
    EXPECT_EQ(flops->mfu, std::nullopt) << device;
  }
}

TEST(ModelFlopsTest, OfAPartOfTheModelThereIsNoMfu) {
  const auto flops = Of({.flops = R"({"step": 2e13, "unknown": ["Experts"]})"});
  ASSERT_TRUE(flops.has_value());
  EXPECT_EQ(flops->mfu, std::nullopt);
  EXPECT_THAT(flops->unknown, ElementsAre("Experts"));
}

TEST(ModelFlopsTest, BatchesThatAreNarrowerThanTheFirstAreFewerOperations) {
  // 100 tokens wide where it was counted, 50 on average: half of what follows the tokens, a quarter of attention.
  const auto flops =
      Of({.flops = R"({"step": 100, "unknown": [], "of_tokens": 60, "of_squares": 20, "width": 100})",
          .tokens = R"({"batches": 4, "rows": 32, "computed": [1600, 80000], "widths": 2,
                                       "follows": 0.9})"},
         1);
  ASSERT_TRUE(flops.has_value());
  EXPECT_DOUBLE_EQ(flops->per_s, 20 + 30 + 5);
}

TEST(ModelFlopsTest, WhatIsNoCountIsNothing) {
  for (const char* fact : {"", "{", "[]", "{}", R"({"step": -1})", R"({"step": "many"})"})
    EXPECT_EQ(Of({.flops = fact}), std::nullopt) << fact;
}

}  // namespace
}  // namespace fullbore::diagnose
