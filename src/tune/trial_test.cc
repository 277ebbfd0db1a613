#include "tune/trial.h"

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
    if (outcome != Outcome::kOk) trial.rate.reset();
    const auto again = TrialFrom(nlohmann::json::parse(ToJson(trial).dump()));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(ToJson(*again), ToJson(trial));
    EXPECT_EQ(again->ok(), outcome == Outcome::kOk);
  }
}

TEST(TrialTest, WhatIsNotOneIsAnError) {
  for (const char* text :
       {"{}", "[]", "3", R"({"settings": {}})", R"({"settings": {}, "outcome": "splendid"})"})
    EXPECT_FALSE(TrialFrom(nlohmann::json::parse(text)).ok()) << text;
}

}  // namespace
}  // namespace fullbore::tune
