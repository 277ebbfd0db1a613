#include "tune/search/search.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tune/search/testing/questions.h"
#include "tune/search/testing/surface.h"

namespace fullbore::tune {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Key;
using testing::SizeIs;

// The first `measured` trials come to an end; time is up in the next, which says why it could not be measured, or nothing.
class OutOfTime : public Laboratory {
 public:
  OutOfTime(int measured, std::string why) : measured_(measured), why_(std::move(why)) {}
  Trial Try(const Request& request) override {
    Trial trial;
    trial.settings = request.settings;
    is_over_ = ++tried_ > measured_;
    if (is_over_) {
      trial.outcome = Outcome::kEndedEarly;
      trial.why = why_;
    } else {
      trial.rate = Rate{100, 99, 101};
    }
    return trial;
  }
  std::optional<Known> Learn(const Trial&) override { return std::nullopt; }
  bool IsOver() const override { return is_over_; }

 private:
  int measured_, tried_ = 0;
  std::string why_;
  bool is_over_ = false;
};

TEST(SearchTest, ATrialThatTimeEndedStandsInTheAnswerWithItsReason) {
  Question question = About({"pin_memory"});
  question.values["pin_memory"] = {true};
  for (const int measured : {0, 1}) {
    OutOfTime laboratory(measured, "the budget ended");
    const Answer answer = Search(question, laboratory);
    ASSERT_THAT(answer.trials, SizeIs(measured + 1));
    EXPECT_EQ(answer.trials.back().why, "the budget ended");
    EXPECT_TRUE(answer.ended_early);
    EXPECT_EQ(answer.recommended.has_value(), measured == 1);
  }
}

TEST(SearchTest, ATrialThatWasInterruptedSaysNothing) {
  OutOfTime laboratory(0, "");
  const Answer answer = Search(About({}), laboratory);
  EXPECT_THAT(answer.trials, SizeIs(0));
  EXPECT_TRUE(answer.ended_early);
}

TEST(SearchTest, OneThatWasDoneDidNotEndEarly) {
  OutOfTime laboratory(100, "");
  EXPECT_FALSE(Search(About({}), laboratory).ended_early);
}

TEST(SearchTest, FindsTheKneeOfTheBatch) {
  SurfaceLaboratory laboratory({});
  const Answer answer = Search(About({"batch_size"}), laboratory);
  const int64_t batch = Chosen(answer, "batch_size", 32);
  const Surface surface;
  const double best = surface.RateOf(0, 32 * 64);  // the largest that is thought of
  EXPECT_GE(surface.RateOf(0, batch), 0.93 * best);
  EXPECT_LT(surface.RateOf(0, batch / 2), 0.95 * best) << "one size less would not do";
  EXPECT_LE(laboratory.trials, 6 + 4);
}

TEST(SearchTest, ABatchOnAPlateauBecomesNoLarger) {
  SurfaceLaboratory laboratory({.a = 1e-5, .b = 0.001, .batch = 64});
  const Answer answer = Search(About({"batch_size"}), laboratory);
  EXPECT_LE(Chosen(answer, "batch_size", 64), 64);
}

TEST(SearchTest, StaysBelowTheCliffOfMemory) {
  for (const int64_t cliff : {40, 100, 200, 400}) {
    SurfaceLaboratory laboratory({.a = 1, .batch_cliff = cliff});
    const Answer answer = Search(About({"batch_size"}), laboratory);
    const int64_t batch = Chosen(answer, "batch_size", 32);
    EXPECT_LE(batch, cliff);
    EXPECT_GT(batch * 2, cliff) << "the largest that fits, where larger is faster";
  }
}

TEST(SearchTest, ABatchThatEndsTheEpochTooSoonIsHalved) {
  SurfaceLaboratory laboratory({.a = 1, .batch_cliff = 100, .beyond_cliff = Outcome::kEndedEarly});
  EXPECT_EQ(Chosen(Search(About({"batch_size"}), laboratory), "batch_size", 32), 64);
}

TEST(SearchTest, TheLargestBatchLeavesATenthOfTheMemory) {
  SurfaceLaboratory laboratory({.a = 1, .memory = 1'600'000'000});
  const Answer answer = Search(About({"batch_size"}), laboratory);
  EXPECT_EQ(Chosen(answer, "batch_size", 32), 256) << "1,256 MB; 512 would take 1,512 of 1,600";
  for (const Trial& trial : answer.trials)
    EXPECT_LT(ValueIn(trial, "batch_size", 32), 512) << "not even tried";
}

TEST(SearchTest, PeaksThatDoNotDifferAllowNoBatchOfAnySize) {
  SurfaceLaboratory laboratory(
      {.a = 1, .memory = 1'200'000'000, .sample_bytes = 150'000, .hidden_bytes = 20'000'000});
  const Answer answer = Search(About({"batch_size"}), laboratory);
  EXPECT_EQ(Chosen(answer, "batch_size", 32), 256) << "batches of 32 and 128 do not show in the peak";
  for (const Trial& trial : answer.trials)
    EXPECT_LE(ValueIn(trial, "batch_size", 32), 512) << "which would fill nine tenths";
}

TEST(SearchTest, ALoaderThatWaitsForStorageDoesNotKeepTheBatchSmall) {
  // Two cores could run twenty workers that sleep nine tenths of their time.
  SurfaceLaboratory laboratory({.fetch_s = 0.002, .cores = 2, .fetch_cpu = 0.1});
  const Answer answer = Search(About({"batch_size", "num_workers"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 8);
  EXPECT_EQ(Chosen(answer, "batch_size", 32), 64) << "the training takes the 3,900/s of eight workers";
}

TEST(SearchTest, AKnobThatTheScriptRefusesIsAskedForOnce) {
  SurfaceLaboratory laboratory({.fetch_s = 0.002, .refuses = "batch_size"});
  const Answer answer = Search(About({"batch_size", "num_workers"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 5) << "the rest is tuned";
  EXPECT_EQ(std::count_if(answer.trials.begin(), answer.trials.end(),
                          [](const Trial& trial) { return trial.outcome == Outcome::kRefused; }),
            1);
}

TEST(SearchTest, TriesOnlyWhatWasGiven) {
  Question question = About({"num_workers"});
  question.values["num_workers"] = {0, 2, 8};
  SurfaceLaboratory laboratory({.fetch_s = 0.002});
  const Answer answer = Search(question, laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 8);
  for (const Trial& trial : answer.trials)
    EXPECT_THAT(ValueIn(trial, "num_workers", 0), testing::AnyOf(0, 2, 8));
}

TEST(SearchTest, ABatchThatFitsTheCachesIsKeptWhereALargerOneIsSlower) {
  SurfaceLaboratory laboratory({.a = 0.001, .batch = 16, .fast_until = 256, .threads = 2});
  Question question = About({"batch_size", "intraop_threads"});
  question.values["intraop_threads"] = {1};
  const Answer answer = Search(question, laboratory);
  const int64_t chosen = Chosen(answer, "batch_size", 16);
  EXPECT_LE(chosen, 256);
  ASSERT_THAT(answer.trials, Contains(Field(&Trial::settings, Contains(Key("intraop_threads")))));
  for (const Trial& trial : answer.trials) {
    if (!trial.settings.contains("intraop_threads")) continue;
    EXPECT_EQ(ValueIn(trial, "batch_size", 16), chosen) << "the rest is tried with what is best";
  }
}

TEST(SearchTest, AValueThatTheScriptHasAnywayIsNoTrial) {
  SurfaceLaboratory laboratory({.threads = 8});
  Question question = About({"intraop_threads"});
  question.values["intraop_threads"] = {4, 8};
  const Answer answer = Search(question, laboratory);
  ASSERT_THAT(answer.trials, SizeIs(2));
  EXPECT_EQ(ValueIn(answer.trials[1], "intraop_threads", 0), 4);
}

TEST(SearchTest, WhatOnlyWorkersHaveIsNotTriedWithoutAny) {
  SurfaceLaboratory laboratory({.fetch_s = 1e-7});
  Question question = About({"num_workers", "prefetch_factor"});
  question.values["prefetch_factor"] = {2, 4};
  const Answer answer = Search(question, laboratory);
  EXPECT_THAT(answer.trials, SizeIs(1));
  EXPECT_THAT(answer.not_tried, Contains(HasSubstr("prefetch_factor: it needs loader workers")));
}

TEST(SearchTest, TheGridLeavesOutWhatOnlyWorkersHaveWhereThereAreNone) {
  Question question = About({"num_workers", "prefetch_factor"});
  question.values = {{"num_workers", {0, 2}}, {"prefetch_factor", {2, 4}}};
  question.exhaustive = true;
  SurfaceLaboratory laboratory({.fetch_s = 0.002});
  Search(question, laboratory);
  EXPECT_EQ(laboratory.trials, 3 + 4) << "none, and two workers with two and four";
}

TEST(SearchTest, WorkersUnderANameOfTheScriptsOwnAreNotTakenForNone) {
  Question question = About({"jobs", "prefetch_factor"});
  question.values = {{"jobs", {0, 2}}, {"prefetch_factor", {2, 4}}};
  question.baseline = {{"jobs", 0}};
  question.exhaustive = true;
  SurfaceLaboratory laboratory({.fetch_s = 0.002});
  const Answer answer = Search(question, laboratory);
  EXPECT_THAT(answer.trials,
              Contains(Field(&Trial::settings, Settings{{"jobs", 2}, {"prefetch_factor", 4}})));
}

TEST(SearchTest, TheGridTriesEveryCombinationOnce) {
  Question question = About({"num_workers", "batch_size"});
  question.values = {{"num_workers", {0, 2, 4}}, {"batch_size", {16, 32}}};
  question.exhaustive = true;
  SurfaceLaboratory laboratory({.fetch_s = 0.002});
  const Answer answer = Search(question, laboratory);
  EXPECT_EQ(laboratory.trials, 6 + 4) << "0 workers and a batch of 32 is the script as it is";
}

TEST(SearchTest, GivesTheSameAnswerOnANoisyMachine) {
  int same = 0;
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    SurfaceLaboratory laboratory({.fetch_s = 0.0024, .noise = 0.01}, seed);
    same += Chosen(Search(About({"num_workers"}), laboratory), "num_workers", 0) == 6;
  }
  EXPECT_GE(same, 45);
}

}  // namespace
}  // namespace fullbore::tune
