#include "tune/search/search.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tune/search/testing/surface.h"

namespace fullbore::tune {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::SizeIs;

Question About(std::set<std::string> knobs) {
  Question question;
  question.knobs = std::move(knobs);
  return question;
}

int64_t ValueIn(const Trial& trial, const char* name, int64_t otherwise) {
  const auto at = trial.settings.find(name);
  return at == trial.settings.end() ? otherwise : at->second.get<int64_t>();
}

int64_t Chosen(const Answer& answer, const char* name, int64_t otherwise) {
  return ValueIn(*answer.recommended, name, otherwise);
}

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

TEST(SearchTest, FindsTheFewestWorkersThatFeedTheTraining) {
  // The device takes 2,424 samples/s, a worker loads 500: 0.95 of it need 4.6 of them.
  SurfaceLaboratory laboratory({.fetch_s = 0.002});
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 5);
  EXPECT_GT(answer.gain.low, 1);
  EXPECT_LE(laboratory.trials, 8) << "the baseline, three numbers, the finalists in turns";
}

TEST(SearchTest, WorkersThatNobodyNeedsAreTakenBack) {
  SurfaceLaboratory laboratory({.fetch_s = 0.0005, .workers = 8});
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 8), 2);
}

TEST(SearchTest, ATrainingThatDoesNotWaitIsNotGivenWorkers) {
  SurfaceLaboratory laboratory({.fetch_s = 1e-7});
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_TRUE(answer.recommended->settings.empty());
  EXPECT_EQ(answer.gain.expected, 1);
  EXPECT_EQ(laboratory.trials, 1);
  ASSERT_THAT(answer.not_tried, SizeIs(1));
  EXPECT_THAT(answer.not_tried[0], HasSubstr("waits for data only"));
}

TEST(SearchTest, WhereNoNumberOfWorkersIsTriedItIsSaidWhy) {
  SurfaceLaboratory laboratory({.fetch_s = 0.002, .workers = 2, .cores = 2, .replays = true});
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_EQ(laboratory.trials, 1);
  EXPECT_THAT(answer.not_tried, Contains(HasSubstr("no other number than 2 is faster")));
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

TEST(SearchTest, WorkersThatImportAScriptNotMadeForItAreTriedOnce) {
  SurfaceLaboratory laboratory({.fetch_s = 0.002, .importing = true});
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 0);
  EXPECT_EQ(std::count_if(answer.trials.begin(), answer.trials.end(),
                          [](const Trial& trial) { return trial.outcome == Outcome::kCrashed; }),
            1);
  EXPECT_THAT(answer.not_tried, ::testing::Contains(::testing::HasSubstr("if __name__ == \"__main__\"")));
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

TEST(SearchTest, WhatIsPredictedOfWorkersIsForTheBatchThatWasAdopted) {
  SurfaceLaboratory laboratory({.fetch_s = 0.0005, .workers = 1, .batch = 8, .replays = true});
  const Answer answer = Search(About({"batch_size", "num_workers"}), laboratory);
  int predicted = 0;
  for (const Trial& trial : answer.trials) {
    if (!trial.predicted || !trial.settings.contains("num_workers")) continue;
    ++predicted;
    EXPECT_GT(ValueIn(trial, "batch_size", 8), 8);
    EXPECT_NEAR(*trial.predicted, trial.rate->mean, 0.05 * trial.rate->mean) << ToText(trial.settings);
  }
  EXPECT_GE(predicted, 1);
}

// Two cores: workers beside a training of two threads are slower than none, and twice as fast beside one of one.
const Surface kShared = {.a = 0.001, .b = 0.0001, .fetch_s = 0.002, .cores = 2, .threads = 2, .held_up = 20};

TEST(SearchTest, WorkersThatHoldUpTheTrainingAreTriedBesideFewerOfItsThreads) {
  SurfaceLaboratory laboratory(kShared);
  const Answer answer = Search(About({"num_workers", "intraop_threads"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 2);
  EXPECT_EQ(Chosen(answer, "intraop_threads", 2), 1);
  EXPECT_THAT(answer.not_tried, Not(Contains(HasSubstr("intraop_threads"))));
}

// Whose replay knows nothing of what the training's threads are good for.
class MisledLaboratory : public SurfaceLaboratory {
 public:
  using SurfaceLaboratory::SurfaceLaboratory;
  std::optional<Known> Learn(const Trial& trial) override {
    auto known = SurfaceLaboratory::Learn(trial);
    known->replay = [](int64_t workers, int64_t threads) { return workers == 2 && threads == 1 ? 3.0 : 1.0; };
    return known;
  }
};

TEST(SearchTest, FewerThreadsThatGainNothingInSpiteOfTheReplayAreTakenBack) {
  Surface surface = kShared;
  surface.held_up = 1;
  surface.pool = 20;
  MisledLaboratory laboratory(surface);
  const Answer answer = Search(About({"num_workers", "intraop_threads"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 2);
  EXPECT_EQ(Chosen(answer, "intraop_threads", 2), 2);
}

TEST(SearchTest, WorkersAreTriedAtOnceWithTheThreadsThatTheReplayAdvises) {
  Surface surface = kShared;
  surface.replays = true;
  SurfaceLaboratory laboratory(surface);
  const Answer answer = Search(About({"num_workers", "intraop_threads"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 2);
  EXPECT_EQ(Chosen(answer, "intraop_threads", 2), 1);
  ASSERT_GE(answer.trials.size(), 2u);
  EXPECT_EQ(answer.trials[1].settings, (Settings{{"intraop_threads", 1}, {"num_workers", 2}}));
}

TEST(SearchTest, WorkersThatHoldUpTheTrainingAlreadyAreGivenTheCoresOfSomeOfItsThreads) {
  Surface surface = kShared;
  surface.workers = 2;
  SurfaceLaboratory laboratory(surface);
  const Answer answer = Search(About({"num_workers", "intraop_threads"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 2), 2);
  EXPECT_EQ(Chosen(answer, "intraop_threads", 2), 1);
}

TEST(SearchTest, ThreadsThatMayNotBeTurnedStayAsTheyAre) {
  SurfaceLaboratory laboratory(kShared);
  const Answer answer = Search(About({"num_workers"}), laboratory);
  EXPECT_EQ(Chosen(answer, "num_workers", 0), 0);
  for (const Trial& trial : answer.trials) EXPECT_FALSE(trial.settings.contains("intraop_threads"));
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

TEST(SearchTest, WhatLookedFasterUntilTheEndOfTheBudgetIsNamedAndNotRecommended) {
  SurfaceLaboratory laboratory({.fetch_s = 0.002});
  laboratory.most_trials = 2;
  const Answer answer = Search(About({"num_workers"}), laboratory);
  ASSERT_TRUE(answer.recommended.has_value());
  EXPECT_TRUE(answer.recommended->settings.empty());
  EXPECT_EQ(answer.gain.expected, 1);
  ASSERT_TRUE(answer.unproven.has_value());
  EXPECT_TRUE(answer.unproven->settings.contains("num_workers"));
}

// What is set was fast while the search looked, and is slower than the script as it is from then on.
class FadingLaboratory : public Laboratory {
 public:
  Trial Try(const Request& request) override {
    const double rate = request.settings.empty() ? 300 : request.proves ? 250 : 511;
    Trial trial;
    trial.settings = request.settings;
    trial.rate = Rate{rate, 0.99 * rate, 1.01 * rate};
    trial.seconds = 4;
    left_s_ -= trial.seconds;
    return trial;
  }
  std::optional<Known> Learn(const Trial&) override { return std::nullopt; }
  bool IsOver() const override { return left_s_ < 0; }
  std::optional<Time> time() const override { return Time{left_s_, 600}; }

 private:
  double left_s_ = 600;
};

TEST(SearchTest, WhatItsOwnProofRefutesIsNotRecommended) {
  Question question = About({"pin_memory"});
  question.values["pin_memory"] = {true};
  FadingLaboratory laboratory;
  const Answer answer = Search(question, laboratory);
  EXPECT_TRUE(answer.recommended->settings.empty());
  ASSERT_THAT(answer.proofs, SizeIs(1));
  EXPECT_EQ(answer.proofs[0].verdict, Verdict::kNoGain);
  EXPECT_FALSE(answer.unproven.has_value()) << "that is decided";
}

TEST(SearchTest, WhereTheBestIsRefutedTheNextIsProven) {
  class Second : public FadingLaboratory {
   public:
    Trial Try(const Request& request) override {
      Trial trial = FadingLaboratory::Try(request);
      const auto at = request.settings.find("mode");
      if (at != request.settings.end() && at->second == 2) trial.rate = Rate{450, 449, 451};
      return trial;
    }
  };
  Question question = About({"mode"});
  question.values["mode"] = {1, 2};
  Second laboratory;
  const Answer answer = Search(question, laboratory);
  ASSERT_THAT(answer.proofs, SizeIs(2));
  EXPECT_EQ(answer.recommended->settings, (Settings{{"mode", 2}}));
  EXPECT_NEAR(answer.gain.expected, 1.5, 0.01);
}

// In slices of the same time it is faster; one run after the other would say that it is slower.
class LaboratoryOfTurns : public FadingLaboratory {
 public:
  explicit LaboratoryOfTurns(size_t pairs) : pairs_left_(pairs) {}
  std::optional<PairOfTrials> TryPair(const Request& before, const Request& after) override {
    if (pairs_left_ == 0) return std::nullopt;
    --pairs_left_;
    PairOfTrials pair = {Try(before), Try(after)};
    pair.after.rate = Rate{330, 329, 331};
    for (Trial* each : {&pair.before, &pair.after}) {
      each->in_slices = true;
      each->memory_filled = 0.97;  // by both
    }
    return pair;
  }

 private:
  size_t pairs_left_;
};

TEST(SearchTest, ProvesInTurnsWhereTheyCanBeHad) {
  Question question = About({"pin_memory"});
  question.values["pin_memory"] = {true};
  LaboratoryOfTurns laboratory(8);
  const Answer answer = Search(question, laboratory);
  ASSERT_THAT(answer.proofs, SizeIs(1));
  EXPECT_EQ(answer.proofs[0].verdict, Verdict::kFaster);
  EXPECT_NEAR(answer.gain.expected, 1.1, 0.001);
  for (const Proof::Pair& pair : answer.proofs[0].pairs) EXPECT_TRUE(pair.in_slices);
  ASSERT_THAT(answer.trials, SizeIs(2 + 2 * answer.proofs[0].pairs.size()));
  EXPECT_TRUE(answer.trials[2].settings.empty()) << "the script as it is comes first";
  for (size_t i = 2; i < answer.trials.size(); ++i) {
    EXPECT_TRUE(answer.trials[i].proves);
    EXPECT_FALSE(answer.trials[i].memory_filled) << "what both fill is nobody's";
  }
}

TEST(SearchTest, ProvesByWholeRunsWhereTurnsCannotBeHadAnyMore) {
  Question question = About({"pin_memory"});
  question.values["pin_memory"] = {true};
  LaboratoryOfTurns laboratory(1);
  const Answer answer = Search(question, laboratory);
  ASSERT_THAT(answer.proofs, SizeIs(1));
  ASSERT_GE(answer.proofs[0].pairs.size(), 2U);
  EXPECT_TRUE(answer.proofs[0].pairs[0].in_slices);
  EXPECT_FALSE(answer.proofs[0].pairs[1].in_slices);
  EXPECT_FALSE(answer.proofs[0].recommends());
}

TEST(SearchTest, TheSearchLeavesTimeForTheProof) {
  class Slow : public SurfaceLaboratory {
   public:
    using SurfaceLaboratory::SurfaceLaboratory;
    Trial Try(const Request& request) override {
      Trial trial = SurfaceLaboratory::Try(request);
      trial.seconds = 10;
      left_s -= 10;
      return trial;
    }
    bool IsOver() const override { return left_s <= 0; }
    std::optional<Time> time() const override { return Time{left_s, 100}; }
    double left_s = 100;
  };
  Question question = About({"a", "b", "c", "d", "e", "f", "g", "h", "num_workers"});
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) question.values[name] = {true};
  Slow laboratory({.fetch_s = 0.002});
  const Answer answer = Search(question, laboratory);
  ASSERT_THAT(answer.proofs, SizeIs(1));
  EXPECT_TRUE(answer.proofs[0].recommends());
  EXPECT_TRUE(answer.recommended->settings.contains("num_workers"));
  EXPECT_TRUE(answer.ended_early) << "not all was tried";
}

TEST(SearchTest, NothingIsRecommendedThatWasNotProven) {
  for (uint32_t seed = 1; seed <= 1000; ++seed) {
    // The batch of the script lies about the knee: smaller ones come as near as noise lets them.
    SurfaceLaboratory laboratory({.a = 0.0001 * (seed % 50), .batch = 64, .noise = 0.03}, seed);
    const Answer answer = Search(About({"batch_size"}), laboratory);
    const Settings& chosen = answer.recommended->settings;
    const auto times = std::count_if(answer.trials.begin(), answer.trials.end(), [&](const Trial& trial) {
      return trial.proves && trial.settings == chosen;
    });
    EXPECT_TRUE(chosen.empty() || times >= 2) << seed << ": " << ToText(chosen);
  }
}

// A step of 10 ms and 0.1 ms a sample: a batch of 32 wastes three quarters of it.
TEST(SearchTest, ALargerBatchIsOfferedBesideTheAnswerAndNotRecommended) {
  SurfaceLaboratory laboratory({.a = 0.010, .b = 0.0001, .batch = 32});
  Question question;
  question.batch_apart = true;
  const Answer answer = Search(question, laboratory);
  ASSERT_TRUE(answer.recommended && answer.larger_batch);
  EXPECT_TRUE(answer.recommended->settings.empty());
  EXPECT_FALSE(answer.unproven);
  EXPECT_TRUE(answer.proofs.empty());
  const auto& [trial, proof] = *answer.larger_batch;
  EXPECT_GE(trial.settings.at("batch_size").get<int64_t>(), 512);
  EXPECT_EQ(proof.verdict, Verdict::kFaster);
  EXPECT_GT(proof.gain()->low, 3);
  for (const Trial& each : answer.pareto) EXPECT_FALSE(each.settings.contains("batch_size"));
}

TEST(SearchTest, ALargerBatchOnAPlateauIsNotOffered) {
  SurfaceLaboratory laboratory({.a = 0, .b = 0.0001, .batch = 32});
  Question question;
  question.batch_apart = true;
  const Answer answer = Search(question, laboratory);
  EXPECT_FALSE(answer.larger_batch);
}

TEST(SearchTest, ALargerBatchIsMeasuredWithTheWorkersThatWereProven) {
  SurfaceLaboratory laboratory({.a = 0.010, .b = 0.0001, .fetch_s = 0.001, .workers = 0, .batch = 32});
  Question question;
  question.knobs = {"num_workers"};
  question.batch_apart = true;
  const Answer answer = Search(question, laboratory);
  ASSERT_TRUE(answer.recommended);
  ASSERT_TRUE(answer.recommended->settings.contains("num_workers"));
  EXPECT_FALSE(answer.recommended->settings.contains("batch_size"));
  for (const Trial& each : answer.trials) {
    if (each.apart) {
      EXPECT_EQ(each.settings.at("num_workers"), answer.recommended->settings.at("num_workers"));
    }
  }
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
