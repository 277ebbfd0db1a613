#include "base/ending_signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace fullbore {
namespace {

class EndingSignalsTest : public testing::Test {
 protected:
  void SetUp() override {
    // A shell may have made us ignore them.
    for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_DFL);
  }
  void TearDown() override { std::signal(SIGHUP, SIG_DFL); }
};

TEST_F(EndingSignalsTest, AreThoseOfPeopleAndTerminals) {
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) EXPECT_TRUE(AsksToEnd(signal)) << signal;
  for (const int signal : {SIGCHLD, SIGTSTP, SIGUSR1}) EXPECT_FALSE(AsksToEnd(signal)) << signal;
}

TEST_F(EndingSignalsTest, LeaveOutWhatTheStarterMadeUsIgnore) {
  std::signal(SIGHUP, SIG_IGN);
  EXPECT_FALSE(AsksToEnd(SIGHUP));
  EXPECT_TRUE(AsksToEnd(SIGINT));
}

}  // namespace
}  // namespace fullbore
