#include "mcp/message.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace fullbore::mcp {
namespace {

Fault FaultOf(std::string_view line) {
  const auto parsed = ParseMessage(line);
  return std::holds_alternative<Refusal>(parsed) ? std::get<Refusal>(parsed).fault : Fault{};
}

TEST(ParseMessageTest, ReadsARequest) {
  const auto parsed = ParseMessage(R"({"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1}})");
  const auto& message = std::get<Message>(parsed);
  EXPECT_EQ(message.id, 7);
  EXPECT_EQ(message.method, "ping");
  EXPECT_EQ(message.params["a"], 1);
}

TEST(ParseMessageTest, ReadsANotificationAndAnAnswer) {
  const auto note = ParseMessage(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  EXPECT_TRUE(std::get<Message>(note).id.is_null());
  const auto answer = ParseMessage(R"({"jsonrpc":"2.0","id":"q","result":{"action":"accept"}})");
  EXPECT_EQ(std::get<Message>(answer).method, "");
  EXPECT_EQ(std::get<Message>(answer).result["action"], "accept");
}

TEST(ParseMessageTest, RefusesWhatIsNoMessage) {
  EXPECT_EQ(FaultOf("{"), Fault::kParse);
  EXPECT_EQ(FaultOf("\xff\xfe"), Fault::kParse);
  EXPECT_EQ(FaultOf("7"), Fault::kInvalidRequest);
  EXPECT_EQ(FaultOf(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])"), Fault::kInvalidRequest) << "a batch";
  EXPECT_EQ(FaultOf(R"({"id":1,"method":"ping"})"), Fault::kInvalidRequest) << "no version";
  EXPECT_EQ(FaultOf(R"({"jsonrpc":"2.0","id":{},"method":"ping"})"), Fault::kInvalidRequest);
  EXPECT_EQ(FaultOf(R"({"jsonrpc":"2.0","id":1,"method":5})"), Fault::kInvalidRequest);
  EXPECT_EQ(FaultOf(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})"), Fault::kInvalidRequest);
}

TEST(ParseMessageTest, RefusesWhatIsNestedTooDeep) {
  const std::string deep(100'000, '[');
  EXPECT_EQ(FaultOf(deep), Fault::kInvalidRequest);
  EXPECT_EQ(FaultOf(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":)" + deep),
            Fault::kInvalidRequest);
}

TEST(ParseMessageTest, RefusesAMessageOfTooManyValues) {
  const auto with_arguments = [](size_t count) {
    const Json params = {{"arguments", std::vector<int>(count)}};
    return Json{{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}, {"params", params}}.dump();
  };
  EXPECT_EQ(FaultOf(with_arguments(kMaxValues / 2)), Fault{});
  EXPECT_EQ(FaultOf(with_arguments(kMaxValues)), Fault::kInvalidRequest);
}

TEST(ParseMessageTest, ALineOfNothingButMembersIsNotBuilt) {
  std::string line = "{";
  while (line.size() < kMaxLineBytes) line += fmt::format("\"{}\":0,", line.size());
  EXPECT_EQ(FaultOf(line + "\"end\":0}"), Fault::kInvalidRequest);
}

TEST(LinesTest, CutsWhatArrivesInPieces) {
  Lines lines;
  EXPECT_TRUE(lines.Add("{\"a\"").empty());
  const auto whole = lines.Add(":1}\n\n{}\n{");
  ASSERT_EQ(whole.size(), 2U) << "empty lines are none";
  EXPECT_EQ(whole[0].text, "{\"a\":1}");
  EXPECT_EQ(whole[1].text, "{}");
}

TEST(LinesTest, AHugeLineIsToldAndTheNextIsReadAgain) {
  Lines lines;
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(lines.Add(std::string(64 << 10, 'x')).empty());
  const auto whole = lines.Add("x\n{}\n");
  ASSERT_EQ(whole.size(), 2U);
  EXPECT_TRUE(whole[0].too_long);
  EXPECT_EQ(whole[0].text, "");
  EXPECT_EQ(whole[1].text, "{}");
}

TEST(LineOfTest, IsOneLineOfJsonWhateverItHolds) {
  const std::string line = LineOf({{"text", "a\nb\x1b[31m\xff"}});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(Json::accept(line));
  EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("\x1b")));
}

}  // namespace
}  // namespace fullbore::mcp
