#include "tune/trial/budget.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>

namespace fullbore::tune {
namespace {

using Handler = void (*)(int);

Handler HandlerOf(int signal) {
  struct sigaction found {};
  sigaction(signal, nullptr, &found);
  return found.sa_handler;
}

class BudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < kUsed.size(); ++i) before_[i] = std::signal(kUsed[i], SIG_DFL);
  }
  void TearDown() override {
    for (size_t i = 0; i < kUsed.size(); ++i) std::signal(kUsed[i], before_[i]);
  }

  static constexpr std::array kUsed = {SIGTERM, SIGHUP};
  std::array<Handler, kUsed.size()> before_{};
};

TEST_F(BudgetTest, ASignalThatWouldEndUsIsAWishToEnd) {
  Budget budget(60);
  EXPECT_FALSE(budget.interrupted());
  std::raise(SIGTERM);
  EXPECT_EQ(budget.interrupted_by(), SIGTERM);
}

TEST_F(BudgetTest, OneThatIsIgnoredStaysIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  Budget budget(60);
  std::raise(SIGHUP);
  EXPECT_FALSE(budget.interrupted());
  EXPECT_EQ(HandlerOf(SIGHUP), SIG_IGN);
}

TEST_F(BudgetTest, AtItsEndSignalsDoWhatTheyDid) {
  { const Budget budget(60); }
  EXPECT_EQ(HandlerOf(SIGTERM), SIG_DFL);
}

TEST_F(BudgetTest, SaysHowLongItIsAsPeopleDo) {
  EXPECT_EQ(Budget(30).text(), "the budget of 30 s");
  EXPECT_EQ(Budget(600).text(), "the budget of 10 min 0 s");
}

}  // namespace
}  // namespace fullbore::tune
