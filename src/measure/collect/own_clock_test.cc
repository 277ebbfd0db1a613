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

constexpr int64_t kMs = 1'000'000;

record::ChannelRecord FetchOf16(int64_t begin_ms, int64_t end_ms, int64_t slowest_ms, int64_t collate_ms) {
  record::ChannelRecord event = {};
  event.kind = static_cast<uint16_t>(record::EventKind::kFetch);
  event.begin_ns = begin_ms * kMs;
  event.end_ns = end_ms * kMs;
  event.a = 16 | slowest_ms * 1'000 << 32;
  event.c = collate_ms * kMs;
  return event;
}

// From 1 to 41 ms by the command's clock: it stood for 1,200 ms meanwhile.
record::ChannelRecord FetchWithPause(int64_t slowest_ms, int64_t collate_ms) {
  OwnClock clock;
  clock.Stand(20 * kMs);
  clock.GoOn(1'220 * kMs);
  record::ChannelRecord event = FetchOf16(1, 1'241, slowest_ms, collate_ms);
  clock.SetTimesOf(event);
  return event;
}

TEST(OwnClockTest, StandsWithinThePartsOfAFetch) {
  const record::ChannelRecord in_sample = FetchWithPause(1'203, 2);
  EXPECT_EQ(in_sample.begin_ns, 1 * kMs);
  EXPECT_EQ(in_sample.end_ns, 41 * kMs);
  EXPECT_EQ(in_sample.a, 16 | int64_t{3'000} << 32);
  EXPECT_EQ(in_sample.c, 2 * kMs);
  const record::ChannelRecord in_collate = FetchWithPause(3, 1'202);
  EXPECT_EQ(in_collate.a, 16 | int64_t{3'000} << 32);
  EXPECT_EQ(in_collate.c, 2 * kMs);
  const record::ChannelRecord between_them = FetchWithPause(3, 2);
  EXPECT_EQ(between_them.a, 16 | int64_t{3'000} << 32);
  EXPECT_EQ(between_them.c, 2 * kMs);
}

TEST(OwnClockTest, LeavesTheSlowestSampleOfAFetchThatDidNotStand) {
  OwnClock clock;
  clock.Stand(100 * kMs);
  clock.GoOn(1'300 * kMs);
  record::ChannelRecord event = FetchOf16(1'301, 1'331, 20, 2);
  clock.SetTimesOf(event);
  EXPECT_EQ(event.end_ns - event.begin_ns, 30 * kMs);
  EXPECT_EQ(event.a, 16 | int64_t{20'000} << 32);
}

}  // namespace
}  // namespace fullbore::collect
