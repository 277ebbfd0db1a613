// What follows from trials that were made, whoever made them: the answer of search.h without its search.
#include <gmock/gmock.h>

#include "tune/search/search.h"

namespace fullbore::tune {
namespace {

using testing::SizeIs;

TEST(ConcludeTest, PrefersTheSmallestThatComesNear) {
  const auto trial = [](Settings settings, double rate, int64_t memory) {
    Trial made;
    made.settings = std::move(settings);
    made.rate = Rate{rate, rate - 1, rate + 1};
    made.peak_memory_bytes = memory;
    return made;
  };
  const std::vector<Trial> trials = {trial({}, 50, 100), trial({{"num_workers", 2}}, 97, 300),
                                     trial({{"num_workers", 4}}, 100, 200),
                                     trial({{"num_workers", 8}}, 90, 400)};
  Question question;
  EXPECT_EQ(FavouriteOf(question, {}, trials, {})->settings.at("num_workers"), 2);
  question.objective = Objective::kMemory;
  EXPECT_EQ(FavouriteOf(question, {}, trials, {})->settings.at("num_workers"), 4);
  question.objective = Objective::kCost;
  EXPECT_EQ(FavouriteOf(question, {}, trials, {})->settings.at("num_workers"), 4);
  EXPECT_THAT(Conclude(question, {}, trials, {}).pareto, SizeIs(2))
      << "50 and 100 samples/s: all others take more for less";
}

Trial Measured(Settings settings, double rate, std::optional<double> filled = std::nullopt) {
  Trial trial;
  trial.settings = std::move(settings);
  trial.rate = Rate{rate, rate, rate};
  trial.memory_filled = filled;
  return trial;
}

TEST(ConcludeTest, WhatFillsTheMemoryIsNotRecommended) {
  const auto batch = [](int64_t size) { return Settings{{"batch_size", size}}; };
  std::vector<Trial> trials = {Measured({}, 50, 0.5), Measured(batch(64), 80, 0.85),
                               Measured(batch(128), 100, 0.95)};
  EXPECT_EQ(FavouriteOf({}, {}, trials, {})->settings, batch(64));
  trials[0].memory_filled = 0.95;  // the machine is as full without us
  EXPECT_EQ(FavouriteOf({}, {}, trials, {})->settings, batch(128));
}

TEST(ConcludeTest, WhatDiedInTheProofIsNotFavoured) {
  std::vector<Trial> trials = {Measured({}, 50), Measured({{"batch_size", 64}}, 80),
                               Measured({{"batch_size", 128}}, 100), Measured({{"batch_size", 128}}, 0)};
  trials.back().outcome = Outcome::kOutOfMemory;
  trials.back().rate.reset();
  EXPECT_EQ(FavouriteOf({}, {}, trials, {})->settings.at("batch_size"), 64);
}

Proof ProofOf(Settings settings, double before, double after) {
  Proof proof;
  proof.settings = std::move(settings);
  for (int i = 0; i < 2; ++i) proof.Add({{before, before, before}, {after, after, after}});
  return proof;
}

TEST(ConcludeTest, OnlyTheTrialsOfTheProofSayHowFastASettingIs) {
  const Settings proven = {{"num_workers", 2}};
  std::vector<Trial> trials = {Measured({}, 50), Measured(proven, 120)};
  for (const Trial& again :
       {Measured({}, 40), Measured(proven, 90), Measured(proven, 90), Measured({}, 40)}) {
    trials.push_back(again);
    trials.back().proves = true;
  }
  const Answer answer = Conclude({}, {}, trials, {ProofOf(proven, 40, 90)});
  EXPECT_EQ(answer.recommended->settings, proven);
  EXPECT_DOUBLE_EQ(answer.recommended->rate->mean, 90);
  EXPECT_DOUBLE_EQ(answer.baseline->rate->mean, 40);
  EXPECT_DOUBLE_EQ(answer.gain.expected, 90.0 / 40);
}

TEST(ConcludeTest, WhatWasRefutedIsNotFavouredAgain) {
  const Settings first = {{"num_workers", 2}}, second = {{"num_workers", 3}};
  const std::vector<Trial> trials = {Measured({}, 50), Measured(first, 100), Measured(second, 99)};
  EXPECT_EQ(FavouriteOf({}, {}, trials, {})->settings, first);
  EXPECT_EQ(FavouriteOf({}, {}, trials, {ProofOf(first, 50, 45)})->settings, second);
}

TEST(ConcludeTest, OfAlikeValuesTheFirstThatTheUserNamedIsRecommended) {
  Question question;
  question.values["threads"] = {8, 2, 4};
  const std::vector<Trial> trials = {Measured({{"threads", 8}}, 50), Measured({{"threads", 4}}, 100),
                                     Measured({{"threads", 2}}, 99)};
  EXPECT_EQ(FavouriteOf(question, {}, trials, {})->settings.at("threads"), 2);
}

}  // namespace
}  // namespace fullbore::tune
