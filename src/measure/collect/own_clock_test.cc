#include "measure/collect/own_clock.h"

#include <gtest/gtest.h>

namespace fullbore::collect {
namespace {

TEST(OwnClockTest, IsTheMachinesUntilTheCommandStands) {
  OwnClock clock;
  EXPECT_EQ(clock.At(0), 0);
  EXPECT_EQ(clock.At(1'000), 1'000);
  clock.GoOn(2'000);  // it did not stand
  EXPECT_EQ(clock.At(3'000), 3'000);
  EXPECT_EQ(clock.stood_ns(), 0);
}

TEST(OwnClockTest, StandsWithTheCommand) {
  OwnClock clock;
  clock.Stand(1'000);
  EXPECT_TRUE(clock.stands());
  EXPECT_EQ(clock.At(900), 900);
  EXPECT_EQ(clock.At(5'000), 1'000) << "what was under way when it was stopped";
  clock.Stand(1'200);
  clock.GoOn(3'000);
  EXPECT_FALSE(clock.stands());
  EXPECT_EQ(clock.At(2'000), 1'000);
  EXPECT_EQ(clock.At(3'000), 1'000);
  EXPECT_EQ(clock.At(3'500), 1'500);
}

TEST(OwnClockTest, ForgetsNoPause) {
  OwnClock clock;
  clock.Stand(1'000);
  clock.GoOn(3'000);
  clock.Stand(3'500);
  clock.GoOn(4'500);
  EXPECT_EQ(clock.stood_ns(), 3'000);
  EXPECT_EQ(clock.At(500), 500);
  EXPECT_EQ(clock.At(3'200), 1'200);
  EXPECT_EQ(clock.At(4'000), 1'500);
  EXPECT_EQ(clock.At(10'000), 7'000);
}

}  // namespace
}  // namespace fullbore::collect
