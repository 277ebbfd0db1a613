#include "mcp/tool.h"

#include <gmock/gmock.h>

namespace fullbore::mcp {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Place Here() {
  return {*AllowedPaths::Make({}), "runs",
          [](const std::string& runs, const std::string& name) -> Result<std::string> {
            return runs + "/" + (name.empty() ? "newest" : name) + ".fbr";
          }};
}

Result<Call> CallWith(const char* tool, const Json& arguments) {
  return CallOf(*ToolNamed(tool), arguments, Here());
}

std::string ErrorOf(const char* tool, const Json& arguments) {
  const auto call = CallWith(tool, arguments);
  return call ? "" : call.error().text;
}

TEST(CallOfTest, ACommandStandsBehindTheSeparator) {
  const auto call = CallWith("run", {{"command", "python 'my train.py' --lr 1"}, {"limit", "2m"}});
  ASSERT_TRUE(call.ok());
  EXPECT_THAT(call->behind, ElementsAre("--", "python", "my train.py", "--lr", "1"));
  EXPECT_THAT(call->starts, ElementsAre("python 'my train.py' --lr 1"));
  EXPECT_EQ(call->limit_s, 120);
}

TEST(CallOfTest, NoTextOfAClientsIsAnOption) {
  const auto call = CallWith("compare", {{"baseline", "--unprotected"}, {"candidate", "a"}});
  ASSERT_TRUE(call.ok());
  EXPECT_THAT(call->words, Contains("--baseline=--unprotected"));
  EXPECT_THAT(ErrorOf("explain_finding", {{"id", "--help"}}), HasSubstr("begins with '-'"));
  EXPECT_NE(ErrorOf("diagnose", {{"what", {"--json"}}}), "--json") << "is a name, which is resolved";
}

TEST(CallOfTest, ARunIsFoundByItsName) {
  const auto call = CallWith("diagnose", {{"what", {"last"}}});
  ASSERT_TRUE(call.ok());
  EXPECT_THAT(call->words.back(), ::testing::EndsWith("/runs/newest.fbr"));
  EXPECT_TRUE(call->starts.empty());
}

TEST(CallOfTest, WhatIsComparedStartsProcessesOnlyWhereItIsCommands) {
  EXPECT_TRUE(CallWith("compare", {{"before", "a"}, {"after", "b"}})->starts.empty());
  EXPECT_EQ(CallWith("compare", {{"baseline", "a"}, {"candidate", "b"}})->starts.size(), 2U);
  EXPECT_EQ(CallWith("diagnose", {{"pid", 4711}})->starts.size(), 1U);
}

TEST(CallOfTest, SaysWhichArgumentIsWrong) {
  EXPECT_THAT(ErrorOf("run", Json::object()), HasSubstr("'command' is missing"));
  EXPECT_THAT(ErrorOf("run", {{"command", 5}}), HasSubstr("'command' is not a text"));
  EXPECT_THAT(ErrorOf("run", {{"command", "a"}, {"limit", "soon"}}), HasSubstr("'limit' is not a time"));
  for (const char* never : {"0s", "-1m", "inf", "nan"})
    EXPECT_THAT(ErrorOf("run", {{"command", "a"}, {"limit", never}}), HasSubstr("'limit' is not a time"));
  EXPECT_THAT(ErrorOf("diagnose", {{"what", "last"}}), HasSubstr("is not a list"));
  EXPECT_THAT(ErrorOf("diagnose", {{"pid", -1}}), HasSubstr("number of a process"));
  EXPECT_THAT(ErrorOf("measure", {{"command", std::string("a\0b", 3)}}), HasSubstr("zero byte"));
  EXPECT_THAT(ErrorOf("doctor", {{"x", 1}}), HasSubstr("takes no argument 'x'"));
  EXPECT_THAT(CallWith("run", {{"comand", "a"}}).error().hint, HasSubstr("did you mean 'command'?"));
}

TEST(CallOfTest, ToldWhatIsWrongNobodyGetsAllOfItBack) {
  EXPECT_LT(ErrorOf("doctor", {{std::string(100'000, 'x'), 1}}).size(), 1000U);
}

TEST(CallOfTest, RefusesPathsOutsideOfTheWorkingDirectory) {
  EXPECT_THAT(ErrorOf("diagnose", {{"what", {"/etc/passwd"}}}), HasSubstr("outside"));
  EXPECT_THAT(ErrorOf("diagnose", {{"runs", "/etc"}}), HasSubstr("outside"));
  EXPECT_THAT(ErrorOf("measure", {{"command", "a"}, {"log", "../../x"}}), HasSubstr("outside"));
}

TEST(SchemaOfTest, EveryToolHasOne) {
  for (const Tool& tool : AllTools()) {
    const Json schema = SchemaOf(tool);
    EXPECT_EQ(schema["type"], "object") << tool.name;
    EXPECT_EQ(schema["properties"].size(), tool.parameters.size()) << tool.name;
  }
  EXPECT_EQ(SchemaOf(*ToolNamed("run"))["required"], Json({"command"}));
}

}  // namespace
}  // namespace fullbore::mcp
