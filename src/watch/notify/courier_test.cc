#include "watch/notify/courier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fd.h"
#include "base/testing/scratch_directory.h"
#include "base/text.h"

namespace fullbore::watch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr Courier::Patience kImpatient = {1'000'000, 4'000'000, 60'000'000'000};

class CourierTest : public ::testing::Test {
 protected:
  // A program that gets the directory of the test as its own.
  Target Program(const std::string& name, const std::string& lines) {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path) << "#!/bin/sh\ncd '" << directory_.path() << "'\n" << lines << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return {Target::Kind::kCommand, path};
  }
  std::string Written(const std::string& name) {
    const auto text = ReadFile(directory_.path() + "/" + name);
    return text ? *text : "";
  }
  static Parcel Firing(const Target& target, int64_t tag) {
    return {target,
            {{"alert", "a; rm -rf /"}, {"state", "firing"}, {"run", "r"}, {"what", "it\nwaits"}},
            tag,
            false};
  }
  static Parcel Resolved(const Target& target, int64_t tag) {
    Parcel parcel = Firing(target, tag);
    parcel.json["state"] = "resolved";
    parcel.json["resolved_unix_ns"] = 7;
    return parcel;
  }
  static std::vector<Outcome> WaitFor(Courier& courier, size_t outcomes) {
    std::vector<Outcome> all;
    while (all.size() < outcomes) {
      for (Outcome& outcome : courier.Take()) all.push_back(std::move(outcome));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return all;
  }

  ScratchDirectory directory_;
};

TEST_F(CourierTest, ACommandGetsTheAlertOnItsInputAndInItsEnvironment) {
  Courier courier(kImpatient);
  courier.Send(Firing(
      Program("page", "cat > json; printf %s \"$FULLBORE_ALERT_NAME|$FULLBORE_ALERT_STATE\" > env"), 3));
  const auto outcomes = WaitFor(courier, 1);
  EXPECT_TRUE(outcomes[0].delivered) << outcomes[0].problem;
  EXPECT_EQ(outcomes[0].tag, 3);
  EXPECT_EQ(Json::parse(Written("json")).at("what"), "it\nwaits");
  EXPECT_EQ(Written("env"), "a; rm -rf /|firing");
  EXPECT_TRUE(courier.idle());
}

TEST_F(CourierTest, WhatFailsIsTriedAgainAndTheEndNeverOvertakesTheBeginning) {
  Courier courier(kImpatient);
  const Target target =
      Program("page", "echo x >> tries; [ $(wc -l < tries) -ge 3 ] && echo $FULLBORE_ALERT_STATE >> heard");
  courier.Send(Firing(target, 1));
  courier.Send(Resolved(target, 1));
  const auto outcomes = WaitFor(courier, 2);
  EXPECT_TRUE(outcomes[0].delivered && outcomes[1].delivered);
  EXPECT_FALSE(outcomes[0].resolved);
  EXPECT_TRUE(outcomes[1].resolved);
  EXPECT_EQ(Written("heard"), "firing\nresolved\n");
}

TEST_F(CourierTest, ACommandThatAlwaysFailsIsGivenUpWithItsReason) {
  Courier courier(kImpatient);
  courier.Send(Firing(Program("page", "echo x >> tries; exit 7"), 1));
  const auto outcomes = WaitFor(courier, 1);
  EXPECT_FALSE(outcomes[0].delivered);
  EXPECT_THAT(outcomes[0].problem, HasSubstr("status 7"));
  const std::string tries = Written("tries");
  EXPECT_THAT(Split(tries, 'x'), SizeIs(6)) << "five tries";
}

TEST_F(CourierTest, WhoDoesNotAnswerKeepsNobodyWaiting) {
  Courier courier(kImpatient);
  courier.Send(Firing(Program("slow", "sleep 1000"), 1));
  courier.Send(Firing(Program("quick", "true"), 2));
  const auto outcomes = WaitFor(courier, 1);
  EXPECT_EQ(outcomes[0].tag, 2);
  EXPECT_FALSE(courier.idle());
}  // and the end of the courier is the end of `slow`, or the test would not end

TEST_F(CourierTest, WhatCannotBeStartedSaysWhy) {
  Courier courier(kImpatient);
  courier.Send(Firing({Target::Kind::kCommand, directory_.path() + "/missing"}, 1));
  EXPECT_THAT(WaitFor(courier, 1)[0].problem, HasSubstr("No such file"));
}

TEST_F(CourierTest, ARefreshHasNoOutcome) {
  Courier courier(kImpatient);
  Parcel again = Firing(Program("page", "exit 1"), 1);
  again.refresh = true;
  courier.Send(again);
  while (!courier.idle()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_THAT(courier.Take(), SizeIs(0));
}

// The name and the password of a user are longer than the mask that stands for them.
TEST_F(CourierTest, AnUnreachableUrlIsNamedWithoutItsUserAndItsPath) {
  constexpr Courier::Patience kOnce = {1'000'000, 1'000'000, 0};
  for (const std::string user : {"", "u@", "a-long-user-name:a-long-password@", "u:p@ss:w@"}) {
    for (const std::string path : {"/services/s3cr3t", "?s3cr3t", "#s3cr3t", "/a?s3cr3t"}) {
      Courier courier(kOnce);
      courier.Send(Firing({Target::Kind::kWebhook, "http://" + user + "127.0.0.1:1" + path}, 1));
      const std::string problem = WaitFor(courier, 1)[0].problem;
      EXPECT_THAT(problem, HasSubstr("127.0.0.1:1:")) << user << path;
      for (const char* secret : {"s3cr3t", "services", "long", "p@ss"})
        EXPECT_THAT(problem, ::testing::Not(HasSubstr(secret))) << user << path;
    }
  }
}

TEST_F(CourierTest, AnUnusableUrlIsNotTriedForAnHour) {
  Courier courier;
  courier.Send(Firing({Target::Kind::kWebhook, "http://exa mple/token"}, 1));
  const auto outcomes = WaitFor(courier, 1);
  EXPECT_FALSE(outcomes[0].delivered);
  EXPECT_THAT(outcomes[0].problem, ::testing::Not(HasSubstr("token")));
}

TEST(AlertmanagerTest, AFiringAlertEndsByItselfAndAResolvedOneHasEnded) {
  Json alert = {{"alert", "a"}, {"run", "r"}, {"host", "h"}, {"what", "w"}, {"fired_unix_ns", 1'000'000'000}};
  alert["evidence"] = {{{"what", "waits"}, {"value", 0.5}, {"unit", "ratio"}}};
  alert["fix"] = {"f"};
  const Json firing = ForAlertmanager(alert, 60'000'000'000);
  ASSERT_THAT(firing, SizeIs(1));
  EXPECT_EQ(firing[0]["labels"]["alertname"], "a");
  EXPECT_EQ(firing[0]["startsAt"], "1970-01-01T00:00:01Z");
  EXPECT_EQ(firing[0]["endsAt"], "1970-01-01T00:06:00Z");
  EXPECT_EQ(firing[0]["annotations"]["description"], "waits: 50 %\n");
  alert["resolved_unix_ns"] = 30'000'000'000;
  EXPECT_EQ(ForAlertmanager(alert, 60'000'000'000)[0]["endsAt"], "1970-01-01T00:00:30Z");
}

}  // namespace
}  // namespace fullbore::watch
