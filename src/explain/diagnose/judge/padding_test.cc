#include <gtest/gtest.h>

#include <string>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::HasSubstr;
using testing::MadeLoader;
using ::testing::Not;

// Samples of 25 tokens in batches of one width, 100; 50 where each batch is as wide as its longest.
constexpr char kFixed[] =
    R"({"batches": 16, "rows": 128, "computed": [12800, 1280000], "useful": 3200, "longest": [6400, 320000], "widths": 1,
        "lengths": [10, 15, 25, 35, 50], "told_by": "attention_mask", "follows": 1.0})";
// The same, padded to the longest of their batches already.
constexpr char kLongest[] =
    R"({"batches": 16, "rows": 128, "computed": [6400, 320000], "useful": 3200, "longest": [6400, 320000], "widths": 9,
        "lengths": [10, 15, 25, 35, 50], "told_by": "attention_mask", "follows": 1.0})";

ARun WithTokens(const char* fact) {
  ARun run = ATraining();  // 95 of 100 ms are passes
  run.rank().facts["tokens"] = fact;
  run.rank().device = "cpu";
  return run;
}

TEST(PaddingTest, IsRaisedByBatchesOfOneWidth) {
  const Diagnosis diagnosis = Diagnose(WithTokens(kFixed));
  ASSERT_THAT(diagnosis, Finds("padding"));
  EXPECT_EQ(diagnosis.findings.front().id, "padding");
  const Finding& finding = *FindingIn(diagnosis, "padding");
  EXPECT_THAT(finding.title, HasSubstr("75 % of the tokens in a batch are padding"));
  EXPECT_NEAR(finding.share, 0.95 * 0.75, 1e-9);
  EXPECT_THAT(finding, Advises("longest"));
  EXPECT_THAT(finding, Advises("group_by_length"));
  EXPECT_THAT(finding, Advises("packing=True"));
  EXPECT_GT(finding.speedup.low, 1.3);
  const double without = 0.8 * 0.25 + 0.2 * 0.0625;  // of the passes, with no padding at all
  EXPECT_LE(finding.speedup.high, 1 / (1 - 0.95 * (1 - without)));
}

TEST(PaddingTest, PackingIsNamedBesideSortingThatLeavesAsFew) {
  record::Loader loader = MadeLoader(0, 100, 1, 1);
  loader.dataset_samples = 1'000'000;
  ARun run = WithTokens(
      R"({"batches": 16, "rows": 128, "computed": [3840, 115200], "useful": 3200, "longest": [3840, 115200],
          "widths": 9, "lengths": [20, 22, 24, 25, 26, 28, 30], "told_by": "attention_mask", "follows": 1.0})");
  const Diagnosis diagnosis = Diagnose(run.FedBy(loader));
  const Finding& finding = *FindingIn(diagnosis, "padding");
  EXPECT_THAT(finding, Advises("group_by_length"));
  EXPECT_THAT(finding, Advises("packing=True (25 of 30 tokens"));
}

TEST(PaddingTest, OfTheLongestOfABatchIsGrouped) {
  const Diagnosis diagnosis = Diagnose(WithTokens(kLongest));
  ASSERT_THAT(diagnosis, Finds("padding"));
  const Finding& finding = *FindingIn(diagnosis, "padding");
  EXPECT_EQ(finding.change, "batches of samples of like length");
  EXPECT_THAT(finding, Not(Advises("pad each batch to its own longest")));
  EXPECT_EQ(finding.costs, replay::Cost::kNumerics);
}

// The passes in batches of widths that are sorted: their quantiles are those of the lengths.
TEST(PaddingTest, AttentionGainsMoreThanItsTokensTheMoreTheWiderItsBatches) {
  const auto gain = [](const char* more) {
    std::string fact = kLongest;
    fact.replace(fact.rfind('}'), 1, more);
    return FindingIn(Diagnose(WithTokens(fact.c_str())), "padding")->speedup;
  };
  const Speedup others = gain(R"(, "attends": false, "features": 64})");
  const Speedup wide = gain(R"(, "attends": true, "features": 64})");
  const Speedup deep = gain(R"(, "attends": true, "features": 4096})");
  EXPECT_GT(wide.expected, deep.expected);
  EXPECT_GT(wide.high, deep.high);
  EXPECT_EQ(wide.low, deep.low) << "in proportion to the tokens";
  EXPECT_LT(others.low, wide.low);
  EXPECT_EQ(gain(R"(, "attends": true})").high, 1) << "of how many features is not known";
}

TEST(PaddingTest, OfWorkThatDoesNotFollowTokensIsNotRaised) {
  EXPECT_THAT(
      Diagnose(WithTokens(R"({"batches": 16, "rows": 128, "computed": [12800, 1280000], "useful": 3200,
      "longest": [6400, 320000], "widths": 1, "lengths": [10, 25, 50], "told_by": "ends", "follows": 0.02})")),
      Not(Finds("padding")));
}

TEST(PaddingTest, IsNotRaisedByLittlePadding) {
  EXPECT_THAT(
      Diagnose(WithTokens(R"({"batches": 16, "rows": 128, "computed": [12800, 1280000], "useful": 12000,
      "longest": [12500, 1250000], "widths": 1, "lengths": [80, 95, 100], "told_by": "ends", "follows": 1.0})")),
      Not(Finds("padding")));
  EXPECT_THAT(Diagnose(WithTokens("{}")), Not(Finds("padding"))) << "taken back";
}

TEST(PaddingTest, PromisesNothingWhereItIsNotKnownHowTheStepFollows) {
  std::string fact = kFixed;
  fact.replace(fact.find(", \"follows\""), std::string::npos, "}");
  EXPECT_EQ(FindingIn(Diagnose(WithTokens(fact.c_str())), "padding")->speedup.high, 1)
      << "no module was seen";

  ARun two = WithTokens(kFixed);
  two.Beside(WithTokens(kFixed));
  EXPECT_EQ(FindingIn(Diagnose(two), "padding")->speedup.high, 1) << "ranks wait for the longest of all";

  ARun waits = WithTokens(kFixed);
  waits.FedBy(MadeLoader(2, 100, 120, 120)).InEachStep(record::Share::kDataWait, 20);
  EXPECT_EQ(FindingIn(Diagnose(waits), "padding")->speedup.high, 1) << "the loader sets the pace";

  ARun device = WithTokens(kFixed);
  device.rank().device = "cuda:0";
  const Diagnosis of_device = Diagnose(device);
  EXPECT_EQ(FindingIn(of_device, "padding")->speedup.high, 1) << "the host's time is not the device's";
  EXPECT_EQ(FindingIn(of_device, "padding")->share, 0);
  EXPECT_NE(of_device.findings.front().id, "padding");
}

TEST(PaddingTest, OfACompiledModelIsCutToAFewLengths) {
  ARun run = WithTokens(kFixed);
  run.rank().facts["compile"] = "default";
  EXPECT_THAT(*FindingIn(Diagnose(run), "padding"), Advises("multiples of 64"));
}

}  // namespace
}  // namespace fullbore::diagnose
