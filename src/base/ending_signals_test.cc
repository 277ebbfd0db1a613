#include "base/ending_signals.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>

namespace fullbore {
namespace {

class EndingSignalsTest : public testing::Test {
 protected:
  // A shell may have made us ignore some of them.
  void SetUp() override {
    for (size_t i = 0; i < kAll.size(); ++i) before_[i] = std::signal(kAll[i], SIG_DFL);
  }
  void TearDown() override {
    for (size_t i = 0; i < kAll.size(); ++i) std::signal(kAll[i], before_[i]);
  }

  static constexpr std::array kAll = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  std::array<void (*)(int), kAll.size()> before_{};
};

TEST_F(EndingSignalsTest, AreThoseOfPeopleAndTerminals) {
  for (const int signal : kAll) EXPECT_TRUE(AsksToEnd(signal)) << signal;
  for (const int signal : {SIGCHLD, SIGTSTP, SIGUSR1}) EXPECT_FALSE(AsksToEnd(signal)) << signal;
}

TEST_F(EndingSignalsTest, LeaveOutWhatTheStarterMadeUsIgnore) {
  std::signal(SIGHUP, SIG_IGN);
  EXPECT_FALSE(AsksToEnd(SIGHUP));
  EXPECT_TRUE(AsksToEnd(SIGINT));
}

}  // namespace
}  // namespace fullbore
