#include "explain/diagnose/memory_what_if.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using testing::ARun;
using testing::ATraining;
using ::testing::HasSubstr;

// On a device of 10 GB with 1 GB of weights, gradients and states each; 1 MB for each token, and 200 MB in pieces.
ARun ARunWithPeaks(const std::string& peaks, const std::string& more = "") {
  ARun run = ATraining();
  run.rank().facts["memory"] = fmt::format(
      R"({{"weights": {{"float32": 1e9}}, "gradients": {{"float32": 1e9}}, "states": {{"momentum_buffer":
          {{"float32": 1e9}}}}, "total": 10e9, "outside": 300e6, "reserved": 5.2e9, "peaks": [{}]{}}})",
      peaks, more);
  return run;
}

constexpr char kOneSize[] = "[4, 500, 2000, 5e9, 1]";
constexpr char kThreeSizes[] = "[4, 100, 400, 3.4e9, 1], [4, 300, 1200, 4.2e9, 5], [4, 500, 2000, 5e9, 9]";

MemoryChange Change(std::initializer_list<const char*> texts) {
  MemoryChange change;
  for (const char* text : texts) EXPECT_TRUE(*ReadMemoryChange(text, change)) << text;
  return change;
}

MemoryWhatIf Asked(const ARun& run, std::initializer_list<const char*> texts) {
  return WhatIfOf(run, "", Change(texts));
}

TEST(MemoryWhatIfTest, ReadsABatchAndALength) {
  const MemoryChange change = Change({"batch=64", "seq=4096"});
  EXPECT_EQ(change.text, "batch=64,seq=4096");
  EXPECT_EQ(change.rows, 64);
  EXPECT_EQ(change.width, 4096);
}

TEST(MemoryWhatIfTest, OtherChangesAreNotItsOwnAndNumbersHaveToBeSome) {
  MemoryChange change;
  EXPECT_FALSE(*ReadMemoryChange("pin", change));
  for (const char* text : {"batch=", "batch=0", "batch=-4", "seq=long", "seq=99999999999999", "batch=2x"})
    EXPECT_FALSE(ReadMemoryChange(text, change)) << text;
}

TEST(MemoryWhatIfTest, ALineThroughThreeSizesSaysWhatALargerBatchTakes) {
  const MemoryWhatIf answer = Asked(ARunWithPeaks(kThreeSizes), {"batch=6"});
  EXPECT_EQ(answer.missing, "");
  EXPECT_EQ(answer.batch, "6 rows of 500 tokens");
  EXPECT_EQ(answer.seen, "4 rows of 500 tokens");
  EXPECT_EQ(answer.sizes, 3U);
  EXPECT_EQ(answer.assumes, "");
  EXPECT_NEAR(answer.now, 5.5e9, 1);
  EXPECT_NEAR(answer.expected, 6.5e9, 1);
  EXPECT_NEAR(answer.low, 6.3e9, 1);  // if nothing lies in pieces
  EXPECT_LE(answer.high, answer.total);
}

TEST(MemoryWhatIfTest, BothAreChangedTogether) {
  const MemoryWhatIf answer = Asked(ARunWithPeaks(kThreeSizes), {"seq=1000", "batch=8"});
  EXPECT_EQ(answer.batch, "8 rows of 1,000 tokens");
  EXPECT_NEAR(answer.expected, 3e9 + 8e9 + 0.5e9, 1);
  EXPECT_GT(answer.low, answer.total);
}

TEST(MemoryWhatIfTest, OfOneSizeItIsAGuessThatSaysSo) {
  const MemoryWhatIf answer = Asked(ARunWithPeaks(kOneSize), {"batch=8"});
  EXPECT_NEAR(answer.expected, 7.5e9, 1);
  EXPECT_NEAR(answer.low, 6.27e9, 1e7);
  EXPECT_GT(answer.high, 8.5e9);
  EXPECT_THAT(answer.assumes, HasSubstr("one size"));
}

TEST(MemoryWhatIfTest, SaysWhatIsMissing) {
  EXPECT_THAT(Asked(ATraining(), {"batch=8"}).missing, HasSubstr("recorded no memory of a device"));
  EXPECT_THAT(Asked(ARunWithPeaks(""), {"batch=8"}).missing, HasSubstr("no step came to its end"));
  EXPECT_THAT(Asked(ARunWithPeaks("[4, 0, 2000, 5e9, 1]"), {"seq=8"}).missing, HasSubstr("matrix of tokens"));
  EXPECT_THAT(Asked(ARunWithPeaks("[4, 500, 2000, 5e9, 1], [4, 501, 2004, 9e9, 2], [4, 600, 2400, 9.1e9, 3]"),
                    {"batch=8"})
                  .missing,
              HasSubstr("lie on no line"));
}

// ---- The end by memory ----

constexpr char kUnderWay[] = R"(, "under_way": [4, 2000, 8000])";

RefusedMemory ARefusal() {
  RefusedMemory refused;
  refused.allocated = 8.5e9;
  refused.free = 0.51e9;
  return refused;
}

std::optional<FittingBatch> Fitting(const ARun& run, const RefusedMemory& refused = ARefusal()) {
  const record::Recording recording = run;
  return FittingBatchOf(View(recording, recording.stages.front()), refused);
}

TEST(FittingBatchTest, IsTheLargestOnTheLine) {
  const auto fitting = Fitting(ARunWithPeaks(kThreeSizes, kUnderWay));
  ASSERT_TRUE(fitting);
  EXPECT_EQ(fitting->of, "4 rows of 2,000 tokens");
  EXPECT_EQ(fitting->rows, 3);  // 3 GB stay, of 9.01: 6,010 tokens
  EXPECT_EQ(fitting->width, 1502);
  EXPECT_EQ(fitting->sizes, 3U);
}

TEST(FittingBatchTest, IsNotSaidOfTooFewSizes) {
  EXPECT_FALSE(Fitting(ARunWithPeaks("[4, 300, 1200, 4.2e9, 5], [4, 500, 2000, 5e9, 9]", kUnderWay)));
  EXPECT_FALSE(Fitting(ARunWithPeaks(kOneSize, kUnderWay)));
}

TEST(FittingBatchTest, OfSeveralRanksIsSaidOfWhatAllOfThemComputed) {
  const ARun larger = ARunWithPeaks(kThreeSizes, kUnderWay), usual = ARunWithPeaks(kThreeSizes);
  EXPECT_TRUE(Fitting(ARun(larger).Beside(larger)));
  EXPECT_FALSE(Fitting(ARun(larger).Beside(usual))) << "the other one may have been refused";
  EXPECT_FALSE(Fitting(ARun(usual).Beside(larger)));
}

TEST(FittingBatchTest, IsNotSaidWhereTheBatchWasNoLargerThanOthers) {
  EXPECT_FALSE(Fitting(ARunWithPeaks(kThreeSizes)));
}

TEST(FittingBatchTest, IsNotSaidWhereTheLineSaysThatItFits) {
  EXPECT_FALSE(Fitting(ARunWithPeaks(kThreeSizes, R"(, "under_way": [4, 600, 2400])")));
}

TEST(FittingBatchTest, IsNotSaidOfPeaksOnNoLine) {
  EXPECT_FALSE(Fitting(
      ARunWithPeaks("[4, 500, 2000, 5e9, 1], [4, 501, 2004, 7e9, 2], [4, 600, 2400, 7.1e9, 3]", kUnderWay)));
}

}  // namespace
}  // namespace fullbore::diagnose
