#include <gmock/gmock.h>

#include <algorithm>

#include "tune/search/testing/questions.h"
#include "tune/search/testing/surface.h"

namespace fullbore::tune {
namespace {

using testing::SizeIs;

TEST(SearchProofTest, WhatLookedFasterUntilTheEndOfTheBudgetIsNamedAndNotRecommended) {
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

TEST(SearchProofTest, WhatItsOwnProofRefutesIsNotRecommended) {
  Question question = About({"pin_memory"});
  question.values["pin_memory"] = {true};
  FadingLaboratory laboratory;
  const Answer answer = Search(question, laboratory);
  EXPECT_TRUE(answer.recommended->settings.empty());
  ASSERT_THAT(answer.proofs, SizeIs(1));
  EXPECT_EQ(answer.proofs[0].verdict, Verdict::kNoGain);
  EXPECT_FALSE(answer.unproven.has_value()) << "that is decided";
}

TEST(SearchProofTest, WhereTheBestIsRefutedTheNextIsProven) {
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

TEST(SearchProofTest, ProvesInTurnsWhereTheyCanBeHad) {
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

TEST(SearchProofTest, ProvesByWholeRunsWhereTurnsCannotBeHadAnyMore) {
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

TEST(SearchProofTest, TheSearchLeavesTimeForTheProof) {
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
  EXPECT_TRUE(answer.ended_early) << "not everything was tried";
}

TEST(SearchProofTest, NothingIsRecommendedThatWasNotProven) {
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
TEST(SearchProofTest, ALargerBatchIsOfferedBesideTheAnswerAndNotRecommended) {
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

TEST(SearchProofTest, ALargerBatchOnAPlateauIsNotOffered) {
  SurfaceLaboratory laboratory({.a = 0, .b = 0.0001, .batch = 32});
  Question question;
  question.batch_apart = true;
  const Answer answer = Search(question, laboratory);
  EXPECT_FALSE(answer.larger_batch);
}

TEST(SearchProofTest, ALargerBatchIsMeasuredWithTheWorkersThatWereProven) {
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

}  // namespace
}  // namespace fullbore::tune
