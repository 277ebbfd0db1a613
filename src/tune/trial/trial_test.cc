#include "tune/trial/trial.h"

#include <gtest/gtest.h>

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
    EXPECT_EQ(again->ok(), outcome == Outcome::kOk);
  }
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
