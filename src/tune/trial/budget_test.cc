#include "tune/trial/budget.h"

#include <gtest/gtest.h>

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
    for (const int signal : {SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  }
  void TearDown() override { SetUp(); }
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
