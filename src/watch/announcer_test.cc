#include "watch/announcer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fullbore::watch {
namespace {

using nlohmann::json;
using ::testing::Eq;
using ::testing::Optional;

Verdict WaitsForData() {
  Verdict verdict;
  verdict.id = "input-bound";
  verdict.cause = "too-few-workers";
  verdict.title = "Training waits for data 43 % of the time.";
  verdict.change = "DataLoader(num_workers=4)";
  verdict.steps = 200;
  verdict.gain = {1.6, 1.45, 1.72};
  return verdict;
}

Verdict Saves() {
  Verdict verdict = WaitsForData();
  verdict.id = "host-other";
  verdict.cause = "checkpoint";
  verdict.title = "The loop saves.";
  return verdict;
}

Verdict Healthy() {
  Verdict verdict;
  verdict.id = "healthy";
  verdict.steps = 200;
  return verdict;
}

// How many lines so many looks in a row bring.
int Lines(Announcer& announcer, const Verdict& verdict, int looks) {
  int lines = 0;
  for (int i = 0; i < looks; ++i) lines += announcer.Heard(verdict).has_value() ? 1 : 0;
  return lines;
}

TEST(AnnouncerTest, SaysAVerdictOnceWhenTwoLooksAgree) {
  Announcer announcer;
  EXPECT_EQ(announcer.Heard(WaitsForData()), std::nullopt);
  EXPECT_THAT(
      announcer.Heard(WaitsForData()),
      Optional(Eq("training waits for data 43 % of the time; DataLoader(num_workers=4) would bring 1.60x "
                  "(1.45x to 1.72x)")));
  EXPECT_EQ(Lines(announcer, WaitsForData(), 20), 0);
}

TEST(AnnouncerTest, SaysNothingOfAHealthyRun) {
  Announcer announcer;
  EXPECT_EQ(Lines(announcer, Healthy(), 20), 0);
}

TEST(AnnouncerTest, WaitsUntilTheLowEndIsAGainThatIsFelt) {
  Verdict unsure = WaitsForData();
  unsure.gain = {1.6, 1.04, 2.4};
  Announcer announcer;
  EXPECT_EQ(Lines(announcer, unsure, 5), 0);
  unsure.gain->low = 1.05;
  EXPECT_EQ(Lines(announcer, unsure, 1), 1);
}

TEST(AnnouncerTest, PromisesNothingWhereOthersMayBeTheCause) {
  Verdict noisy = WaitsForData();
  noisy.noisy = true;
  Announcer announcer;
  EXPECT_EQ(Lines(announcer, noisy, 5), 0);
}

TEST(AnnouncerTest, AFewStepsAreTooFew) {
  Verdict early = WaitsForData();
  early.steps = 5;
  Announcer announcer;
  EXPECT_EQ(Lines(announcer, early, 5), 0);
}

TEST(AnnouncerTest, SaysAnotherVerdictOnlyWhenItHasComeForGood) {
  Announcer announcer;
  EXPECT_EQ(Lines(announcer, WaitsForData(), 2), 1);
  EXPECT_EQ(Lines(announcer, Saves(), 2), 0);
  EXPECT_EQ(Lines(announcer, WaitsForData(), 2), 0) << "back to what was said";
  EXPECT_EQ(Lines(announcer, Saves(), 3), 1);
}

TEST(AnnouncerTest, WhatStopsARunIsSaidWithoutAGain) {
  Verdict hang;
  hang.id = "hang";
  hang.title = "No step has ended for 5 minutes.";
  hang.critical = true;
  hang.steps = 200;
  Announcer announcer;
  (void)announcer.Heard(hang);
  EXPECT_THAT(announcer.Heard(hang), Optional(Eq("no step has ended for 5 minutes")));
}

TEST(AnnouncerTest, GivesUpOnWhoDoesNotListen) {
  Announcer announcer;
  int lines = 0;
  for (int i = 0; i < 20; ++i) lines += Lines(announcer, i % 2 == 0 ? WaitsForData() : Saves(), 3);
  EXPECT_EQ(lines, 5);
}

TEST(VerdictTest, IsTheFirstFindingOfAReport) {
  const json report = json::parse(R"({"window": {"steps": 80}, "findings": [
      {"id": "input-bound", "cause": "storage", "severity": "critical", "title": "Waits.",
       "speedup": {"expected": 1.5, "low": 1.4, "high": 1.6}},
      {"id": "host-other", "severity": "warning", "title": "Saves."}]})");
  const auto verdict = VerdictOf(report);
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->id, "input-bound");
  EXPECT_EQ(verdict->cause, "storage");
  EXPECT_TRUE(verdict->critical);
  EXPECT_FALSE(verdict->noisy);
  EXPECT_EQ(verdict->steps, 80);
  EXPECT_DOUBLE_EQ(verdict->gain->high, 1.6);
}

TEST(VerdictTest, IsSureBesideANeighbourThatCannotOverturnIt) {
  const char* text = R"({"window": {"steps": 80, "noise": "Noisy: other programs keep 0.9 of 2 cores busy."},
      "findings": [{"id": "input-bound", "severity": "critical", "title": "Waits 97 %."}]})";
  json report = json::parse(text);
  EXPECT_FALSE(VerdictOf(report)->noisy);
  report["findings"][0]["doubtful"] = true;
  EXPECT_TRUE(VerdictOf(report)->noisy);
}

TEST(VerdictTest, IsNoneWhereThereIsNoReport) {
  for (const char* text : {"{}", "[]", "7", R"({"findings": []})", R"({"findings": [{"id": 7}]})"})
    EXPECT_FALSE(VerdictOf(json::parse(text)).has_value()) << text;
  EXPECT_FALSE(VerdictOf(json::parse("cut o", nullptr, false)).has_value());
}

}  // namespace
}  // namespace fullbore::watch
