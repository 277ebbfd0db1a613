#include "watch/alert/alert_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/clock.h"

namespace fullbore::watch {
namespace {

const Price kPrice{36, "USD"};

Alert Waits() {
  Alert alert;
  alert.rule = "waits";
  alert.stage = 1;
  alert.since_ns = 10 * kNsPerSecond;
  alert.fired_ns = 70 * kNsPerSecond;
  alert.what = "Training waits for data 43 % of the time.";
  alert.fix = {"DataLoader(num_workers=4)", "or another one"};
  return alert;
}

Alert Over() {
  Alert alert = Waits();
  alert.resolved_ns = 100 * kNsPerSecond;
  alert.end = "it waits no more";
  alert.lost_ns = 20 * kNsPerSecond;
  alert.lost_money = 0.2;
  return alert;
}

TEST(AlertJsonTest, AnAlertIsOneLine) {
  EXPECT_EQ(
      InWords(Waits(), std::nullopt),
      "alert 'waits' for 1 min 0 s: Training waits for data 43 % of the time; DataLoader(num_workers=4)");
  Alert at_once = Waits();
  at_once.since_ns = at_once.fired_ns;
  at_once.fix.clear();
  EXPECT_EQ(InWords(at_once, std::nullopt), "alert 'waits': Training waits for data 43 % of the time");
}

TEST(AlertJsonTest, ItsEndSaysHowLongItWasAndWhatItCost) {
  EXPECT_EQ(InWords(Over(), std::nullopt),
            "alert 'waits' is over after 1 min 30 s: it waits no more (20 s lost)");
  EXPECT_EQ(LossInWords(Over(), kPrice), "20 s lost, 0.20 USD");
  EXPECT_EQ(LossInWords(Waits(), kPrice), "") << "it is not known";
}

TEST(AlertJsonTest, AMessageHasTimesOfTheWallAndAnIdOfItsOwn) {
  const Origin origin{"run", "train", "node7", "/runs/run.fbr", 1000 * kNsPerSecond};
  const auto firing = ToJson(Waits(), origin, std::nullopt);
  EXPECT_EQ(firing["state"], "firing");
  EXPECT_EQ(firing["id"], "run/1/waits/70000000000");
  EXPECT_EQ(firing["since_unix_ns"], 1010 * kNsPerSecond);
  EXPECT_EQ(firing["fired_unix_ns"], 1070 * kNsPerSecond);
  EXPECT_FALSE(firing.contains("lost") || firing.contains("resolved_unix_ns") || firing.contains("end"));
  const auto resolved = ToJson(Over(), origin, kPrice);
  EXPECT_EQ(resolved["state"], "resolved");
  EXPECT_EQ(resolved["id"], firing["id"]) << "the same alert";
  EXPECT_EQ(resolved["resolved_unix_ns"], 1100 * kNsPerSecond);
  EXPECT_EQ(resolved["lost"],
            (nlohmann::ordered_json{{"seconds", 20.0}, {"money", 0.2}, {"currency", "USD"}}));
  EXPECT_FALSE(ToJson(Over(), origin, std::nullopt)["lost"].contains("money")) << "without a price";
}

TEST(AlertJsonTest, WhatHasNotFiredIsPending) {
  Alert pending = Waits();
  pending.fired_ns = 0;
  const auto json = ToJson(pending, {}, std::nullopt);
  EXPECT_EQ(json["state"], "pending");
  EXPECT_FALSE(json.contains("fired_unix_ns"));
}

TEST(AlertJsonTest, EvidenceThatIsNoNumberIsLeftOut) {
  Alert alert = Waits();
  alert.evidence = {{"waits", 0.4, "ratio", "hook", "", {}, {}},
                    {"rate", std::numeric_limits<double>::quiet_NaN(), "samples/s", "hook", "", {}, {}}};
  EXPECT_EQ(ToJson(alert, {}, std::nullopt)["evidence"].size(), 1u);
}

TEST(AlertJsonTest, AnOriginNamesTheStageOfTheAlert) {
  record::Recording recording;
  recording.id = "run";
  recording.path = "/runs/run.fbr";
  recording.machine = {{"hostname", "node7"}};
  recording.stages.resize(2);
  recording.stages[0].id = 1;
  recording.stages[0].name = "prepare";
  recording.stages[1].id = 2;
  recording.stages[1].name = "train";
  const Origin origin = OriginOf(recording, 1);
  EXPECT_EQ(origin.stage, "prepare");
  EXPECT_EQ(origin.host, "node7");
  EXPECT_EQ(OriginOf(recording, 7).stage, "") << "no such stage";
}

TEST(AlertJsonTest, WhatARunFileKeepsIsReadBack) {
  Alert alert;
  alert.end = "it is over";
  alert.evidence.push_back({"waits", 0.4, "ratio", "hook", "loader_wait", {}, {}});
  alert.fix = {"more workers"};
  alert.lost_ns = 7;
  alert.lost_money = 1.5;
  Alert back;
  ReadDetails(DetailsOf(alert), back);
  EXPECT_EQ(back.end, alert.end);
  ASSERT_EQ(back.evidence.size(), 1u);
  EXPECT_EQ(back.evidence[0].what, "waits");
  EXPECT_EQ(back.evidence[0].value, 0.4);
  EXPECT_EQ(back.fix, alert.fix);
  EXPECT_EQ(back.lost_ns, 7);
  EXPECT_EQ(back.lost_money, 1.5);
}

TEST(AlertJsonTest, DetailsOfSomebodyElseDoNoHarm) {
  for (const char* text : {"", "[]", "{\"evidence\": 7}", "{\"evidence\": [{\"what\": 1}]}", "{\"fix\": [7]}",
                           "{\"lost_ns\": \"x\"}"}) {
    Alert alert;
    ReadDetails(text, alert);
    EXPECT_FALSE(alert.lost_money) << text;
  }
}

}  // namespace
}  // namespace fullbore::watch
