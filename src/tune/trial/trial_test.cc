#include "tune/trial/trial.h"

#include <gtest/gtest.h>

#include <tuple>

namespace fullbore::tune {
namespace {

Trial Measured() {
  Trial trial;
  trial.settings = {{"num_workers", 4}, {"precision", "bf16"}};
  trial.rate = Rate{100, 98, 102};
  trial.predicted = 110;
  trial.peak_memory_bytes = 1 << 30;
  trial.busy = 0.9;
  trial.steps = 40;
  trial.seconds = 7.5;
  trial.run = "2026-11-23-1500-train";
  trial.why = "in words";
  trial.noisy = trial.cut_short = trial.proves = trial.in_slices = trial.apart = true;
  trial.memory_filled = 0.5;
  trial.first_losses = {2.5, 2.25};
  return trial;
}

TEST(TrialTest, IsTheSameAfterItsJson) {
  for (const Outcome outcome : {Outcome::kOk, Outcome::kOutOfMemory, Outcome::kCrashed, Outcome::kHung,
                                Outcome::kRefused, Outcome::kEndedEarly}) {
    Trial trial = Measured();
    trial.outcome = outcome;
    if (outcome == Outcome::kRefused) trial.refused = "batch_size";
    if (outcome != Outcome::kOk) trial.rate.reset();
    const auto again = TrialFrom(nlohmann::json::parse(ToJson(trial).dump()));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(ToJson(*again), ToJson(trial));
    EXPECT_EQ(std::tie(again->refused, again->why, again->run),
              std::tie(trial.refused, trial.why, trial.run));
    EXPECT_TRUE(again->noisy && again->cut_short && again->proves && again->in_slices && again->apart);
    EXPECT_EQ(again->memory_filled, 0.5);
    EXPECT_EQ(again->first_losses, trial.first_losses);
    EXPECT_EQ(again->ok(), outcome == Outcome::kOk);
  }
}

TEST(TrialTest, ARefusalThatAnEarlierVersionKeptNamesItsKnob) {
  const auto kept = nlohmann::json::parse(
      R"({"settings": {"batch_size": 8}, "outcome": "refused", "why": "batch_size: it has a batch_sampler"})");
  EXPECT_EQ(TrialFrom(kept)->refused, "batch_size");
  const auto other = nlohmann::json::parse(
      R"({"settings": {}, "outcome": "refused", "why": "it wrote 5 GB: more than half of what was free"})");
  EXPECT_EQ(TrialFrom(other)->refused, "");
}

TEST(TrialTest, SaysStepsUnderTheirOwnName) {
  Trial trial = Measured();
  EXPECT_EQ(ToJson(trial)["samples_per_s"], 100);
  EXPECT_EQ(ToJson(trial)["steps_per_s"], nullptr);
  trial.unit = kStepsPerSecond;
  const auto json = ToJson(trial);
  EXPECT_EQ(json["samples_per_s"], nullptr);
  EXPECT_EQ(json["steps_per_s"], 100);
  EXPECT_EQ(json["unit"], "steps/s");
  EXPECT_EQ(ToJson(*TrialFrom(json)), json);
}

TEST(TrialTest, ReadsStepsThatWereKeptUnderTheNameOfSamples) {
  const auto json = nlohmann::json::parse(
      R"({"settings": {}, "outcome": "ok", "samples_per_s": 5, "ci95": [4, 6], "unit": "steps/s"})");
  const auto trial = TrialFrom(json);
  ASSERT_TRUE(trial.ok());
  EXPECT_EQ(trial->rate->mean, 5);
  EXPECT_EQ(ToJson(*trial)["steps_per_s"], 5);
}

TEST(TrialTest, WhatIsNotOneIsAnError) {
  for (const char* text :
       {"{}", "[]", "3", R"({"settings": {}})", R"({"settings": {}, "outcome": "splendid"})"})
    EXPECT_FALSE(TrialFrom(nlohmann::json::parse(text)).ok()) << text;
}

}  // namespace
}  // namespace fullbore::tune
