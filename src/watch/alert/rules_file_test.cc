#include "watch/alert/rules_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace fullbore::watch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

RuleSet Parsed(const std::string& text) {
  auto rules = ParseRules(text, "alerts.toml");
  EXPECT_TRUE(rules.ok()) << (rules.ok() ? "" : ToString(rules.error()));
  return rules.ok() ? *rules : RuleSet{};
}

// The text and the hint of the error.
std::string Refused(const std::string& text) {
  const auto rules = ParseRules(text, "alerts.toml");
  EXPECT_FALSE(rules.ok()) << text;
  if (rules.ok()) return "";
  EXPECT_EQ(rules.error().code, ErrorCode::kInvalidArgument);
  return ToString(rules.error());
}

std::string AnAlert(const std::string& lines) { return "[[alert]]\nname = \"a\"\n" + lines; }

TEST(RulesFileTest, AFindingsShareIsReadWithItsTimeAndTargets) {
  const RuleSet set = Parsed(R"(
[price]
per_hour = 32.5
currency = "EUR"
[[alert]]
name = "waits for data"
finding = "input-bound"
above = 0.25
for = "5m"
notify = ["log", "webhook:https://example.com/hook?token=x", "command:/bin/page", "alertmanager:http://127.0.0.1:9093"]
)");
  ASSERT_THAT(set.rules, SizeIs(1));
  const Rule& rule = set.rules[0];
  EXPECT_EQ(std::get<FindingShare>(rule.condition).id, "input-bound");
  EXPECT_EQ(std::get<FindingShare>(rule.condition).above, 0.25);
  EXPECT_EQ(rule.for_ns, 300 * kNsPerSecond);
  ASSERT_THAT(rule.notify, SizeIs(4));
  EXPECT_EQ(rule.notify[1].place, "https://example.com/hook?token=x");
  EXPECT_EQ(Shown(rule.notify[1]), "webhook:https://example.com/***");
  EXPECT_EQ(Shown(rule.notify[2]), "command:/bin/page");
  EXPECT_EQ(set.price->per_hour, 32.5);
  EXPECT_EQ(set.price->currency, "EUR");
}

TEST(RulesFileTest, EveryReceiverIsShownWithoutWhatOpensIt) {
  for (const std::string kind : {"webhook", "slack", "teams", "discord"}) {
    const RuleSet set =
        Parsed(AnAlert("run = \"failed\"\nnotify = [\"" + kind + ":https://u:p@h.example/a/s3cr3t?t=1\"]"));
    EXPECT_EQ(Shown(set.rules.at(0).notify.at(0)), kind + ":https://***@h.example/***");
  }
}

TEST(RulesFileTest, AMisspeltReceiverIsNamedWithoutWhatOpensIt) {
  for (const char* target :
       {"slak:https://h.example/a/s3cr3t", "slack:h.example/s3cr3t", "h.example/s3cr3t"}) {
    const auto set = ParseRules(AnAlert("run = \"failed\"\nnotify = [\"" + std::string(target) + "\"]"), "f");
    ASSERT_FALSE(set);
    EXPECT_THAT(set.error().text, AllOf(HasSubstr("neither log"), Not(HasSubstr("s3cr3t"))));
  }
}

TEST(RulesFileTest, ASeriesMayBeNarrowedByLabels) {
  const RuleSet set = Parsed(AnAlert("series = \"disk_busy{device=vda}\"\nabove = 0.9"));
  const auto& level = std::get<SeriesLevel>(set.rules.at(0).condition);
  EXPECT_EQ(level.name, "disk_busy");
  EXPECT_EQ(level.labels, (record::Labels{{"device", "vda"}}));
  EXPECT_EQ(level.side, Side::kAbove);
  const RuleSet below = Parsed(AnAlert("series = \"gpu_utilization\"\nbelow = 0.2"));
  EXPECT_EQ(std::get<SeriesLevel>(below.rules.at(0).condition).side, Side::kBelow);
}

TEST(RulesFileTest, EveryKindIsAmongTheDefaults) {
  const RuleSet set = Parsed(std::string(kDefaultRules));
  std::vector<bool> seen(std::variant_size_v<Condition>);
  for (const Rule& rule : set.rules) seen[rule.condition.index()] = true;
  seen[Condition(SeriesLevel{}).index()] = true;  // which level is too low depends on the run
  EXPECT_THAT(seen, ::testing::Each(true));
  for (const Rule& rule : set.rules) EXPECT_THAT(rule.notify, SizeIs(1)) << rule.name;
}

TEST(RulesFileTest, WithoutNotifyAnAlertIsLogged) {
  const RuleSet set = Parsed(AnAlert("run = \"failed\""));
  EXPECT_EQ(set.rules.at(0).notify.at(0).kind, Target::Kind::kLog);
  EXPECT_EQ(set.rules.at(0).for_ns, 0) << "it does not become truer by waiting";
}

TEST(RulesFileTest, AnErrorNamesFileLineAlertAndTheWayOut) {
  const std::string error = Refused(AnAlert("finding = \"input-bound\"\nabove = 25"));
  EXPECT_THAT(error, HasSubstr("alerts.toml:4: alert 'a': above = 25"));
  EXPECT_THAT(error, HasSubstr("25 % is 0.25"));
}

TEST(RulesFileTest, MisspeltWordsAreRecognised) {
  EXPECT_THAT(Refused(AnAlert("finding = \"input-bond\"\nabove = 0.1")),
              HasSubstr("did you mean \"input-bound\"?"));
  EXPECT_THAT(Refused(AnAlert("series = \"gpu_utilisation\"\nbelow = 0.1")),
              HasSubstr("did you mean \"gpu_utilization\"?"));
  EXPECT_THAT(Refused(AnAlert("run = \"failed\"\nnotfy = [\"log\"]")), HasSubstr("did you mean 'notify'?"));
  EXPECT_THAT(Refused(AnAlert("findng = \"input-bound\"\nabove = 0.1")),
              HasSubstr("did you mean 'finding'?"));
  EXPECT_THAT(Refused("[[alerts]]\nname = \"a\""), HasSubstr("did you mean 'alert'?"));
  EXPECT_THAT(Refused(AnAlert("device = \"throtled\"")), HasSubstr("did you mean \"throttled\"?"));
}

TEST(RulesFileTest, WhatCannotBeMeantIsRefused) {
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "it contains no alerts"},
           {"alert = 3", "two brackets"},
           {"[[alert]]\nrun = \"failed\"", "name is missing"},
           {AnAlert(""), "does not say what to look at"},
           {AnAlert("run = \"failed\"\nfinding = \"hang\""), "both finding and run"},
           {AnAlert("run = 7"), "run is not a text"},
           {AnAlert("finding = \"hang\""), "above is missing"},
           {AnAlert("finding = \"hang\"\nabove = true"), "above is not a number"},
           {AnAlert("finding = \"hang\"\nabove = nan"), "above is not a number"},
           {AnAlert("series = \"load1\""), "above or below"},
           {AnAlert("series = \"load1\"\nabove = 1\nbelow = 2"), "above or below"},
           {AnAlert("series = \"load1{x\"\nabove = 1"), "labels"},
           {AnAlert("run = \"failed\"\nfor = \"-1s\""), "no time"},
           {AnAlert("run = \"failed\"\nfor = \"nan\""), "no time"},
           {AnAlert("run = \"failed\"\nfor = 5"), "no time"},
           {AnAlert("run = \"failed\"\nfor = \"900h\""), "up to a week"},
           {AnAlert("run = \"failed\"\nnotify = \"log\""), "not a list"},
           {AnAlert("run = \"failed\"\nnotify = [\"command:page\"]"), "neither log"},
           {AnAlert("run = \"failed\"\nnotify = [\"webhook:ftp://x\"]"), "neither log"},
           {AnAlert("run = \"failed\"\nnotify = [\"webhook:https://\"]"), "neither log"},
           {AnAlert("run = \"failed\"\nnotify = [\"slack:#channel\"]"), "neither log"},
           {AnAlert("run = \"failed\"\nabove = 1"), "'above' is unknown here"},
           {AnAlert("run = \"failed\"\n[[alert]]\nname = \"a\"\nrun = \"failed\""), "two alerts 'a'"},
           {"[price]\nper_hour = -1\n" + AnAlert("run = \"failed\""), "per_hour = -1"},
           {"[[alert]\nname", "alerts.toml:1"},
       }) {
    EXPECT_THAT(Refused(text), HasSubstr(part)) << text;
  }
}

TEST(RulesFileTest, WhatIsNoFileOfRulesIsRefusedWithoutReadingOn) {
  for (const char* path : {"/dev/zero", "/"}) {
    const auto rules = ReadRules(path);
    ASSERT_FALSE(rules.ok());
    EXPECT_THAT(rules.error().text, HasSubstr(path));
  }
}

TEST(RulesFileTest, AWrongTargetIsNotRepeatedWithItsSecrets) {
  EXPECT_THAT(Refused(AnAlert("run = \"failed\"\nnotify = [\"web:https://u:secret@h/x?key=secret\"]")),
              ::testing::Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace fullbore::watch
