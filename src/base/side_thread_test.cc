#include "base/side_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/time_limit.h"

namespace fullbore {
namespace {

using State = SideThread::State;
constexpr int64_t kLong = int64_t{600} * 1'000'000'000, kShort = 1'000'000;

State End(SideThread& side) {
  State state = State::kBusy;
  while (state == State::kBusy) state = side.Poll(kShort);
  return state;
}

TEST(SideThreadTest, OnePieceOfWorkAtATimeIsDone) {
  SideThread side(kLong);
  EXPECT_EQ(side.Poll(), State::kFree);
  const auto go = std::make_shared<std::atomic<bool>>(false);
  ASSERT_TRUE(side.Begin([go] { go->wait(false); }));
  EXPECT_EQ(side.Poll(), State::kBusy);
  EXPECT_FALSE(side.Begin([] {}));
  *go = true;
  go->notify_all();
  EXPECT_EQ(End(side), State::kDone);
  EXPECT_EQ(side.Poll(), State::kFree);
}

TEST(SideThreadTest, WorkThatTakesTooLongIsGivenUp) {
  SideThread side(kShort);
  ASSERT_TRUE(side.Begin([] {
    while (true) TimeLimit::Check();
  }));
  EXPECT_EQ(End(side), State::kGivenUp);
  EXPECT_EQ(side.Poll(), State::kFree);
}

TEST(SideThreadTest, WorkThatNeverAsksForTheTimeHoldsUpOnlyItsOwnThread) {
  SideThread side(kShort);
  const auto go = std::make_shared<std::atomic<bool>>(false);
  ASSERT_TRUE(side.Begin([go] { go->wait(false); }));
  EXPECT_EQ(End(side), State::kGivenUp);
  EXPECT_EQ(side.Poll(), State::kStuck);
  EXPECT_FALSE(side.Begin([] {}));
  *go = true;
  go->notify_all();
  while (side.Poll(kShort) == State::kStuck) {
  }
  EXPECT_TRUE(side.Begin([] {}));
  EXPECT_EQ(End(side), State::kDone);
}

TEST(SideThreadTest, ItsEndIsTheEndOfTheWork) {
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  {
    SideThread side(kLong);
    ASSERT_TRUE(side.Begin([ended] {
      try {
        while (true) TimeLimit::Check();
      } catch (const OutOfTime&) {
        *ended = true;
        throw;
      }
    }));
  }
  EXPECT_TRUE(*ended);
}

TEST(TimeLimitTest, CountsOnlyWhileItLasts) {
  {
    const TimeLimit limit(-1);
    EXPECT_THROW(TimeLimit::Check(), OutOfTime);
  }
  EXPECT_NO_THROW(TimeLimit::Check());
}

}  // namespace
}  // namespace fullbore
