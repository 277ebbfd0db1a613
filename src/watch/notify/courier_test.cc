#include "watch/notify/courier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
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
            false,
            nullptr};
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

TEST_F(CourierTest, ARefreshGivesWayOnlyToWhatIsNewerOfTheSameAlert) {
  Courier courier(kImpatient);
  const Target target = Program(
      "page",
      "while [ ! -e go ]; do sleep 0.01; done; echo $FULLBORE_ALERT_STATE $FULLBORE_ALERT_ID >> heard");
  const auto refresh = [&](int64_t tag, const std::string& id) {
    Parcel parcel = Firing(target, tag);
    parcel.refresh = true;
    parcel.json["state"] = "still";
    parcel.json["id"] = id;
    courier.Send(parcel);
  };
  courier.Send(Firing(target, 9));  // the lane is not empty from here on
  for (const char* id : {"old", "new"}) {
    for (int64_t tag = 1; tag <= 3; ++tag) refresh(tag, std::to_string(tag) + id);
  }
  courier.Send(Resolved(target, 2));
  refresh(9, "9");  // it has not been said yet that it fires
  std::ofstream(directory_.path() + "/go") << "";
  while (!courier.idle()) courier.Take(), std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(Written("heard"), "firing\nstill 1new\nstill 3new\nresolved\n");
}

TEST_F(CourierTest, ATargetHearsABoundedNumberOfMessagesOfWhichTheLastSumsUpTheRest) {
  Courier::Patience patience = kImpatient;
  patience.most_a_minute = 3;
  Courier courier(patience);
  const Target target = Program(
      "page", "while [ ! -e go ]; do sleep 0.01; done; echo \"$FULLBORE_ALERT_WHAT\" | tail -1 >> heard");
  for (int64_t tag = 1; tag <= 40; ++tag) courier.Send(Firing(target, tag));
  std::ofstream(directory_.path() + "/go") << "";
  const auto outcomes = WaitFor(courier, 40);
  EXPECT_EQ(Written("heard"), "waits\nwaits\nwaits (and 37 more)\n");
  for (size_t i = 0; i < outcomes.size(); ++i) EXPECT_EQ(outcomes[i].tag, static_cast<int64_t>(i + 1));
  courier.Send(Firing(target, 41));
  EXPECT_FALSE(courier.idle()) << "it waits until the minute is over";
}

TEST_F(CourierTest, OneCourierServesManySendersWithAFewThreads) {
  const auto threads = [] {
    const fs::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  std::thread([] {}).join();  // a sanitizer starts one of its own beside the first
  const auto before = threads();
  Courier courier(kImpatient);
  std::vector<int> senders(40);
  for (int& sender : senders) {
    Parcel parcel = Firing(Program("page" + std::to_string(&sender - senders.data()), "true"), 1);
    parcel.sender = &sender;
    courier.Send(parcel);
  }
  EXPECT_LE(threads(), before + 4);
  for (int& sender : senders) {
    while (!courier.idle(&sender)) {
      for (const Outcome& outcome : courier.Take(&sender)) EXPECT_TRUE(outcome.delivered);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  EXPECT_THAT(courier.Take(), SizeIs(0)) << "each sender has taken its own";
}

TEST_F(CourierTest, NothingThatAProgramStartedOutlivesTheCourier) {
  const std::string here = "echo $$ >> pids; exec sleep 1000";
  for (const std::string last : {"trap '' TERM; sleep 1000", "exit 0"}) {
    auto courier = std::make_unique<Courier>(kImpatient);
    courier->Send(Firing(Program("page", "rm -f pids; sh -c '" + here + "' & setsid sh -c '" + here +
                                             "' & (setsid sh -c '" + here + "' &) \n" + last),
                         1));
    std::string pids;
    while (pids = Written("pids"), std::ranges::count(pids, '\n') < 3)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    courier.reset();
    for (const std::string_view pid : Words(pids)) {
      const auto status = ReadFile("/proc/" + std::string(pid) + "/stat");
      EXPECT_TRUE(!status || status->find(") Z ") != std::string::npos) << pid << " goes on after " << last;
    }
  }
}

// Answers every POST with success, or the first with a refusal, and keeps what was posted.
class FakeAlertmanager {
 public:
  explicit FakeAlertmanager(bool refuses_lists = false) : refuses_lists_(refuses_lists) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_.get(), 8), 0);
    EXPECT_EQ(getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~FakeAlertmanager() {
    shutdown(fd_.get(), SHUT_RDWR);
    thread_.join();
  }
  Target target() const { return {Target::Kind::kAlertmanager, url_}; }
  void LetGo() { free_ = true; }  // it answers nobody before
  std::vector<std::vector<std::string>> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  void Serve() {
    while (true) {
      const UniqueFd client(accept(fd_.get(), nullptr, nullptr));
      if (!client.valid()) return;
      std::string text;
      char bytes[4096];
      size_t body = std::string::npos;
      while (body == std::string::npos || !Json::accept(text.substr(body))) {
        const ssize_t got = recv(client.get(), bytes, sizeof bytes, 0);
        if (got <= 0) break;
        text.append(bytes, static_cast<size_t>(got));
        if (body = text.find("\r\n\r\n"); body != std::string::npos) body += 4;
      }
      if (body == std::string::npos) continue;
      while (!free_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::vector<std::string> names;
      for (const Json& alert : Json::parse(text.substr(body))) names.push_back(alert["labels"]["run"]);
      const std::string status = refuses_lists_ && names.size() > 1 ? "400 No" : "200 OK";
      {
        const std::lock_guard lock(mutex_);
        heard_.push_back(std::move(names));
      }
      const std::string answer = "HTTP/1.1 " + status + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
      (void)!send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  const bool refuses_lists_;
  UniqueFd fd_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string url_;
  std::atomic<bool> free_ = false;
  std::mutex mutex_;
  std::vector<std::vector<std::string>> heard_;
  std::thread thread_;
};

// What is not said again counts as over after five minutes.
TEST_F(CourierTest, AlertmanagerHearsOfAllThatFiresInOneList) {
  FakeAlertmanager receiver;
  Courier courier(kImpatient);
  courier.Send(Firing(receiver.target(), 7));
  for (int64_t tag = 1; tag <= 3; ++tag) {
    Parcel parcel = Firing(receiver.target(), tag);
    parcel.refresh = true;
    parcel.json["run"] = std::to_string(tag);
    courier.Send(parcel);
  }
  receiver.LetGo();
  while (!courier.idle()) courier.Take(), std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::vector<std::string> all;
  for (const auto& list : receiver.heard()) all.insert(all.end(), list.begin(), list.end());
  EXPECT_THAT(all, ElementsAre("r", "1", "2", "3"));
  EXPECT_LE(receiver.heard().size(), 2u);
}

TEST_F(CourierTest, TheEndOfAnAlertIsNotInTheListOfItsBeginning) {
  FakeAlertmanager receiver;
  Courier courier(kImpatient);
  courier.Send(Firing(receiver.target(), 7));
  courier.Send(Resolved(receiver.target(), 7));
  receiver.LetGo();
  EXPECT_THAT(WaitFor(courier, 2), SizeIs(2));
  EXPECT_THAT(receiver.heard(), ElementsAre(ElementsAre("r"), ElementsAre("r")));
}

TEST_F(CourierTest, AListThatIsRefusedIsSaidOneByOne) {
  FakeAlertmanager receiver(/*refuses_lists=*/true);
  Courier courier(kImpatient);
  for (int64_t tag = 1; tag <= 4; ++tag) courier.Send(Firing(receiver.target(), tag));
  receiver.LetGo();
  for (const Outcome& outcome : WaitFor(courier, 4)) EXPECT_TRUE(outcome.delivered) << outcome.tag;
}

TEST_F(CourierTest, AnUnusableUrlIsNotTriedForAnHour) {
  Courier courier;
  courier.Send(Firing({Target::Kind::kWebhook, "http://exa mple/token"}, 1));
  const auto outcomes = WaitFor(courier, 1);
  EXPECT_FALSE(outcomes[0].delivered);
  EXPECT_THAT(outcomes[0].problem, ::testing::Not(HasSubstr("token")));
}

}  // namespace
}  // namespace fullbore::watch
