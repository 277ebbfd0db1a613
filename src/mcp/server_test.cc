#include "mcp/server.h"

#include <gmock/gmock.h>

#include "base/clock.h"

namespace fullbore::mcp {
namespace {

using ::testing::HasSubstr;

// What stands in for a process: it ends when the test says so.
struct State {
  std::optional<Ended> end;
  bool stopped = false;
  std::vector<std::string> words;
};

class FakeJob : public Job {
 public:
  explicit FakeJob(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::optional<Ended> Tick(int64_t) override { return state_->end; }
  void Stop(int64_t) override { state_->stopped = true; }
  std::string last_line() const override { return "fullbore: trial 1"; }

 private:
  std::shared_ptr<State> state_;
};

class FakeStarter : public Starter {
 public:
  Result<std::unique_ptr<Job>> Start(const Call& call) override {
    started.push_back(std::make_shared<State>());
    started.back()->words = call.words;
    return std::unique_ptr<Job>(std::make_unique<FakeJob>(started.back()));
  }
  std::vector<std::shared_ptr<State>> started;
};

class ServerTest : public ::testing::Test {
 protected:
  explicit ServerTest(bool allow_run = false)
      : server_({"1.0", allow_run, {*AllowedPaths::Make({}), "runs", FindRun}}, starter_,
                [this](const Json& message) { sent_.push_back(message); }) {}

  static Result<std::string> FindRun(const std::string& runs, const std::string& name) {
    return runs + "/" + name;
  }

  void Say(const std::string& line) { server_.Take({line, false}); }
  void Say(const Json& message) { Say(message.dump()); }
  void Ask(int id, const char* method, const Json& params = Json::object()) {
    Say(Json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
  }
  void CallTool(int id, const char* name, const Json& arguments, const Json& meta = Json::object()) {
    Ask(id, "tools/call", {{"name", name}, {"arguments", arguments}, {"_meta", meta}});
  }
  void Begin(const Json& capabilities = Json::object()) {
    Ask(0, "initialize", {{"protocolVersion", "2025-06-18"}, {"capabilities", capabilities}});
  }
  const Json& last() const { return sent_.back(); }
  std::string LastText() const { return last()["result"]["content"][0]["text"]; }

  FakeStarter starter_;
  std::vector<Json> sent_;
  Server server_;
};

class AllowedServerTest : public ServerTest {
 protected:
  AllowedServerTest() : ServerTest(true) { Begin(); }
};

TEST_F(ServerTest, AgreesOnAVersion) {
  Begin();
  EXPECT_EQ(last()["result"]["protocolVersion"], "2025-06-18");
  Ask(1, "initialize", {{"protocolVersion", "1999-01-01"}});
  EXPECT_EQ(last()["result"]["protocolVersion"], "2025-11-25");
}

TEST_F(ServerTest, WantsToBeInitializedFirst) {
  Ask(1, "tools/list");
  EXPECT_EQ(last()["error"]["code"], -32600);
  Ask(2, "ping");
  EXPECT_TRUE(last().contains("result"));
}

TEST_F(ServerTest, AnswersWhatIsWrongWithAnErrorAndGoesOn) {
  Begin();
  Say(std::string("{"));
  EXPECT_EQ(last()["error"]["code"], -32700);
  server_.Take({"", true});
  EXPECT_EQ(last()["error"]["code"], -32600);
  Ask(1, "no/such");
  EXPECT_EQ(last()["error"]["code"], -32601);
  CallTool(2, "no_such", Json::object());
  EXPECT_EQ(last()["error"]["code"], -32602);
  Ask(3, "tools/list");
  EXPECT_EQ(last()["result"]["tools"].size(), 8U);
}

TEST_F(ServerTest, StartsNothingWithoutLeave) {
  Begin();
  CallTool(1, "run", {{"command", "python train.py"}});
  EXPECT_TRUE(last()["result"]["isError"]);
  EXPECT_THAT(LastText(), HasSubstr("--allow-run"));
  EXPECT_TRUE(starter_.started.empty());
}

TEST_F(ServerTest, AsksThePersonWhereTheClientCan) {
  Begin({{"elicitation", Json::object()}});
  CallTool(1, "run", {{"command", "python train.py"}});
  EXPECT_EQ(last()["method"], "elicitation/create");
  EXPECT_THAT(last()["params"]["message"].get<std::string>(), HasSubstr("python train.py"));
  EXPECT_TRUE(starter_.started.empty());
  Say(Json{{"jsonrpc", "2.0"},
           {"id", last()["id"]},
           {"result", {{"action", "accept"}, {"content", {{"allow", true}}}}}});
  EXPECT_EQ(starter_.started.size(), 1U);
}

TEST_F(ServerTest, TakesNothingButAYesForAYes) {
  Begin({{"elicitation", Json::object()}});
  for (const Json& answer : {Json{{"action", "decline"}}, Json{{"action", "accept"}},
                             Json{{"action", "accept"}, {"content", {{"allow", false}}}}}) {
    CallTool(1, "run", {{"command", "python train.py"}});
    Say(Json{{"jsonrpc", "2.0"}, {"id", last()["id"]}, {"result", answer}});
    EXPECT_TRUE(last()["result"]["isError"]);
  }
  EXPECT_TRUE(starter_.started.empty());
}

TEST_F(ServerTest, ReadsWithoutLeave) {
  Begin();
  CallTool(1, "diagnose", {{"what", {"last"}}});
  ASSERT_EQ(starter_.started.size(), 1U);
  starter_.started[0]->end =
      Ended{0, "input-bound\n", "", R"({"schema":"fullbore.report/1","next_step":"x"})"};
  server_.Tick(1);
  EXPECT_EQ(last()["id"], 1);
  EXPECT_EQ(LastText(), "input-bound\n");
  EXPECT_EQ(last()["result"]["structuredContent"]["result"]["next_step"], "x");
  EXPECT_FALSE(server_.busy());
}

TEST_F(ServerTest, WhatWasLeftOutIsReadByItsName) {
  Begin();
  CallTool(1, "doctor", Json::object());
  Json large = {{"schema", "fullbore.doctor/1"}, {"checks", Json::array()}};
  for (int i = 0; i < 2000; ++i) large["checks"].push_back({{"what", std::string(100, 'w')}, {"number", i}});
  starter_.started[0]->end = Ended{0, "ok", "", large.dump()};
  server_.Tick(1);
  EXPECT_LT(last().dump().size(), 100'000U);
  const Json shown = last()["result"]["structuredContent"];
  const std::string name = shown["result"]["checks"].back()["resource"];
  Ask(2, "resources/read", {{"uri", name}});
  EXPECT_THAT(last()["result"]["contents"][0]["text"].get<std::string>(), HasSubstr("\"number\""));
  Ask(3, "resources/read", {{"uri", name + "/nothing"}});
  EXPECT_EQ(last()["error"]["code"], -32002);
}

TEST_F(ServerTest, AsksNobodyThroughAClientThatOnlyShowsPages) {
  Begin({{"elicitation", {{"url", Json::object()}}}});
  CallTool(1, "run", {{"command", "python train.py"}});
  EXPECT_TRUE(last()["result"]["isError"]);
  Begin({{"elicitation", {{"form", Json::object()}, {"url", Json::object()}}}});
  CallTool(2, "run", {{"command", "python train.py"}});
  EXPECT_EQ(last()["method"], "elicitation/create");
}

TEST_F(ServerTest, KeepsNoMoreReportsThanThereIsRoomFor) {
  Begin();
  const std::string large =
      Json{{"schema", "fullbore.doctor/1"}, {"text", std::string(10 << 20, 'x')}}.dump();
  for (int i = 0; i < 3; ++i) {
    CallTool(1, "doctor", Json::object());
    starter_.started.back()->end = Ended{0, "ok", "", large};
    server_.Tick(1);
  }
  Ask(2, "resources/list");
  const Json resources = last()["result"]["resources"];
  ASSERT_EQ(resources.size(), 2U) << "the runs, and the newest of three";
  EXPECT_EQ(resources[1]["uri"], "fullbore://reports/3");
}

TEST_F(ServerTest, AResourceThatCannotBeReadIsAnErrorAndNoContents) {
  Begin();
  Ask(1, "resources/read", {{"uri", "fullbore://runs"}});
  starter_.started[0]->end = Ended{2, "", "fullbore: no run\n", ""};
  server_.Tick(1);
  EXPECT_EQ(last()["error"]["code"], -32603);
  EXPECT_EQ(last()["error"]["message"], "fullbore: no run\n");
  for (int id = 2; id < 11; ++id) Ask(id, "resources/read", {{"uri", "fullbore://runs"}});
  EXPECT_EQ(last()["id"], 10);
  EXPECT_EQ(last()["error"]["code"], -32603) << "too many run";
}

TEST_F(ServerTest, AnErrorIsWhatTheCommandLineSays) {
  Begin();
  CallTool(1, "diagnose", Json::object());
  starter_.started[0]->end = Ended{2, "", "fullbore: no run\nhint: record one\n", ""};
  server_.Tick(1);
  EXPECT_TRUE(last()["result"]["isError"]);
  EXPECT_EQ(LastText(), "fullbore: no run\nhint: record one\n");
}

TEST_F(AllowedServerTest, TellsProgressWhereItIsWanted) {
  CallTool(1, "measure", {{"command", "a"}}, {{"progressToken", "t"}});
  const size_t before = sent_.size();
  server_.Tick(kNsPerSecond / 2);
  EXPECT_EQ(sent_.size(), before);
  server_.Tick(2 * kNsPerSecond);
  EXPECT_EQ(last()["method"], "notifications/progress");
  EXPECT_EQ(last()["params"]["progressToken"], "t");
  EXPECT_EQ(last()["params"]["message"], "fullbore: trial 1");
}

TEST_F(AllowedServerTest, TellsNoProgressToWhatIsNoToken) {
  CallTool(1, "measure", {{"command", "a"}}, {{"progressToken", {{"long", "list"}}}});
  const size_t before = sent_.size();
  server_.Tick(2 * kNsPerSecond);
  EXPECT_EQ(sent_.size(), before);
}

TEST_F(ServerTest, ANameThatLeadsNowhereComesBackClipped) {
  Begin();
  Ask(1, "resources/read", {{"uri", "fullbore://reports/9/" + std::string(100'000, 'x')}});
  EXPECT_EQ(last()["error"]["code"], -32002);
  EXPECT_LT(last().dump().size(), 1000U);
}

TEST_F(AllowedServerTest, ACancelledCallIsStoppedAndNotAnswered) {
  CallTool(1, "measure", {{"command", "a"}});
  Say(Json{{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 1}}}});
  EXPECT_TRUE(starter_.started[0]->stopped);
  const size_t before = sent_.size();
  starter_.started[0]->end = Ended{143, "", "", ""};
  server_.Tick(1);
  EXPECT_EQ(sent_.size(), before);
  EXPECT_FALSE(server_.busy());
}

TEST_F(ServerTest, APersonIsNotAskedWhatCannotBeStarted) {
  Begin({{"elicitation", Json::object()}});
  CallTool(1, "measure", {{"command", "a"}});
  Say(Json{{"jsonrpc", "2.0"},
           {"id", last()["id"]},
           {"result", {{"action", "accept"}, {"content", {{"allow", true}}}}}});
  CallTool(2, "measure", {{"command", "b"}});
  EXPECT_THAT(LastText(), HasSubstr("still measuring"));
}

TEST_F(AllowedServerTest, OneMeasurementAtATime) {
  CallTool(1, "measure", {{"command", "a"}});
  CallTool(2, "measure", {{"command", "b"}});
  EXPECT_EQ(starter_.started.size(), 1U);
  EXPECT_TRUE(last()["result"]["isError"]);
  CallTool(1, "measure", {{"command", "c"}});
  EXPECT_EQ(last()["error"]["code"], -32600) << "its id is still open";
}

TEST_F(AllowedServerTest, ACallIsStoppedWhenItsTimeIsOver) {
  CallTool(1, "run", {{"command", "a"}, {"limit", "3s"}});
  server_.Tick(2 * kNsPerSecond);
  EXPECT_FALSE(starter_.started[0]->stopped);
  server_.Tick(4 * kNsPerSecond);
  EXPECT_TRUE(starter_.started[0]->stopped);
}

}  // namespace
}  // namespace fullbore::mcp
