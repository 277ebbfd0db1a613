#include "watch/notify/forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace fullbore::watch {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

Json AnAlert() {
  Json alert = {
      {"alert", "waits"}, {"run", "r"}, {"host", "h"}, {"what", "w"}, {"fired_unix_ns", 1'000'000'000}};
  alert["evidence"] = {{{"what", "waits"}, {"value", 0.5}, {"unit", "ratio"}}};
  alert["fix"] = {"f"};
  return alert;
}

// As long as a run file of somebody else's may make it, of two bytes a character.
Json AHugeAlert() {
  std::string huge;
  for (int i = 0; i < 20'000; ++i) huge += "*ä";
  Json alert = AnAlert();
  for (const char* key : {"alert", "run", "stage", "host", "what", "end"}) alert[key] = huge;
  for (int i = 0; i < 30; ++i) alert["evidence"].push_back({{"what", huge}, {"value", 1.0}, {"unit", ""}});
  alert["fix"] = {huge};
  alert["since_unix_ns"] = alert["resolved_unix_ns"] = 2'000'000'000;
  return alert;
}

size_t Characters(const Json& text) {
  const auto& bytes = text.get_ref<const std::string&>();
  return static_cast<size_t>(std::ranges::count_if(bytes, [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST(AlertmanagerTest, AFiringAlertEndsByItselfAndAResolvedOneHasEnded) {
  Json alert = AnAlert();
  const Json firing = ForAlertmanager(alert, 60'000'000'000);
  ASSERT_THAT(firing, SizeIs(1));
  EXPECT_EQ(firing[0]["labels"]["alertname"], "waits");
  EXPECT_EQ(firing[0]["startsAt"], "1970-01-01T00:00:01Z");
  EXPECT_EQ(firing[0]["endsAt"], "1970-01-01T00:06:00Z");
  EXPECT_EQ(firing[0]["annotations"]["description"], "waits: 50 %\n");
  alert["resolved_unix_ns"] = 30'000'000'000;
  EXPECT_EQ(ForAlertmanager(alert, 60'000'000'000)[0]["endsAt"], "1970-01-01T00:00:30Z");
}

TEST(ChatFormsTest, EachSaysWhatHappenedWhereAndWhatToDo) {
  for (const Json& form : {ForSlack(AnAlert()), ForTeams(AnAlert()), ForDiscord(AnAlert())}) {
    for (const char* part : {"Firing", "Run", "Host", "50 %", "What to do"})
      EXPECT_THAT(form.dump(), HasSubstr(part));
  }
  EXPECT_EQ(ForSlack(AnAlert())["blocks"][0]["text"]["text"], "Firing: waits");
  EXPECT_EQ(ForTeams(AnAlert())["attachments"][0]["content"]["body"][1]["inlines"][0]["text"], "w");
  EXPECT_EQ(ForDiscord(AnAlert())["embeds"][0]["description"], "w");
}

TEST(ChatFormsTest, TheEndOfAnAlertIsGreenAndSaysWhyItIsOver) {
  Json over = AnAlert();
  over["resolved_unix_ns"] = 2'000'000'000;
  over["end"] = "the run ended";
  EXPECT_NE(ForDiscord(over)["embeds"][0]["color"], ForDiscord(AnAlert())["embeds"][0]["color"]);
  for (const Json& form : {ForSlack(over), ForTeams(over), ForDiscord(over)}) {
    EXPECT_THAT(form.dump(), HasSubstr("Over"));
    EXPECT_THAT(form.dump(), HasSubstr("the run ended"));
  }
}

// Names of runs and lines of scripts are anybody's.
TEST(ChatFormsTest, WhatIsSaidCallsNobodyAndLinksNowhere) {
  Json alert = AnAlert();
  alert["what"] = "<!channel> @everyone [free](http://evil) `x` & *b*";
  const Json slack = ForSlack(alert), teams = ForTeams(alert), discord = ForDiscord(alert);
  EXPECT_EQ(slack["text"], "Firing: waits. &lt;!channel&gt; @everyone [free](http://evil) `x` &amp; *b*");
  for (const Json& block : slack["blocks"]) EXPECT_THAT(block.dump(), Not(HasSubstr("mrkdwn")));
  for (const Json& block : teams["attachments"][0]["content"]["body"])
    EXPECT_EQ(block["type"], "RichTextBlock");
  EXPECT_EQ(discord["allowed_mentions"]["parse"], Json::array());
  EXPECT_THAT(discord["embeds"][0]["description"].get<std::string>(),
              HasSubstr(R"(\[free\]\(http\://evil\))"));
}

TEST(ChatFormsTest, NoTextIsLongerThanTheChatTakes) {
  const Json slack = ForSlack(AHugeAlert()), discord = ForDiscord(AHugeAlert());
  EXPECT_LE(Characters(slack["blocks"][0]["text"]["text"]), 150u);
  EXPECT_LE(Characters(slack["blocks"][1]["text"]["text"]), 3'000u);
  EXPECT_LE(slack["blocks"][2]["fields"].size(), 10u);
  for (const Json& field : slack["blocks"][2]["fields"]) EXPECT_LE(Characters(field["text"]), 2'000u);
  const Json& embed = discord["embeds"][0];
  size_t together = Characters(embed["title"]) + Characters(embed["description"]);
  EXPECT_LE(Characters(embed["title"]), 256u);
  for (const Json& field : embed["fields"]) {
    EXPECT_LE(Characters(field["value"]), 1'024u);
    together += Characters(field["name"]) + Characters(field["value"]);
  }
  EXPECT_LE(together, 6'000u);
  EXPECT_LE(ForTeams(AHugeAlert()).dump().size(), 28u << 10);
}

TEST(ChatFormsTest, AnAlertThatSaysNothingStillHasATextEverywhere) {
  const Json none = {{"alert", ""}};
  for (const Json& form : {ForSlack(none), ForTeams(none), ForDiscord(none)})
    EXPECT_THAT(form.dump(), Not(HasSubstr("\"text\":\"\"")));
  EXPECT_EQ(ForDiscord(none)["embeds"][0]["description"], "\\-");
}

TEST(ChatFormsTest, ATextIsCutBetweenCharacters) {
  for (const Json& form : {ForSlack(AHugeAlert()), ForTeams(AHugeAlert()), ForDiscord(AHugeAlert())})
    EXPECT_NO_THROW((void)form.dump());  // which throws where a character is not whole
}

}  // namespace
}  // namespace fullbore::watch
