#include "loader/core/source/remote/message_log.h"

#include <gtest/gtest.h>

namespace fullbore::loader::remote {
namespace {

class MessageLogTest : public testing::Test {
 protected:
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (const auto& message : log_.Take()) texts.push_back(message.text);
    return texts;
  }
  int64_t now_ns_ = 0;
  MessageLog log_{[this] { return now_ns_; }};
};

TEST_F(MessageLogTest, LogsTheFirstTroubleAtOnceAndThenOneEveryHalfMinute) {
  for (int i = 0; i < 1000; ++i) log_.Trouble("trouble " + std::to_string(i));
  EXPECT_EQ(Texts(), (std::vector<std::string>{"trouble 0"}));
  now_ns_ += 31 * kNsPerSecond;
  log_.Trouble("still");
  EXPECT_EQ(Texts(), (std::vector<std::string>{"still (999 more like this since the last message)"}));
}

TEST_F(MessageLogTest, LogsARecoveryOnlyAfterLoggingTheTrouble) {
  log_.Recovered("from nothing");
  log_.Trouble("trouble");
  log_.Recovered("well again");
  log_.Recovered("another one too");
  EXPECT_EQ(Texts(), (std::vector<std::string>{"trouble", "well again"}));
}

TEST_F(MessageLogTest, LogsATopicOnce) {
  log_.Once("cache", Message::Severity::kWarning, "first");
  EXPECT_EQ(Texts().size(), 1u);
  log_.Once("cache", Message::Severity::kWarning, "second");
  EXPECT_TRUE(Texts().empty());
}

TEST_F(MessageLogTest, KeepsAHundredWhereNobodyTakesThem) {
  for (int i = 0; i < 1000; ++i) log_.Once(std::to_string(i), Message::Severity::kInfo, "x");
  EXPECT_EQ(Texts().size(), 100u);
}

}  // namespace
}  // namespace fullbore::loader::remote
