#include "watch/alert/alert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "watch/alert/alert_json.h"

namespace fullbore::watch {
namespace {

using To = Transition::To;
using State = Sight::State;

Rule ARule(int64_t for_s) {
  Rule rule;
  rule.name = "a";
  rule.for_ns = for_s * kNsPerSecond;
  return rule;
}

Sight Seen(State state, std::optional<double> lost = std::nullopt) {
  Sight sight;
  sight.state = state;
  sight.what = "it is so";
  sight.lost = lost;
  return sight;
}

// A letter for each second: `#` holds, `-` between, `.` over, `?` unknown. The answer: when it went where.
std::vector<std::pair<int64_t, To>> Went(const Rule& rule, std::string_view seconds) {
  Tracker tracker(rule, std::nullopt);
  std::vector<std::pair<int64_t, To>> went;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const State state = seconds[i] == '#'   ? State::kHolds
                        : seconds[i] == '-' ? State::kBetween
                        : seconds[i] == '.' ? State::kOver
                                            : State::kUnknown;
    const auto t = static_cast<int64_t>(i);
    if (const auto change = tracker.Look(Seen(state), 1, t * kNsPerSecond, /*ended=*/false))
      went.emplace_back(t, change->to);
  }
  return went;
}

using Times = std::vector<std::pair<int64_t, To>>;

TEST(TrackerTest, FiresOnceWhenItHasHeldLongEnoughAndResolvesOnce) {
  EXPECT_EQ(Went(ARule(3), "..########......"),
            (Times{{2, To::kPending}, {5, To::kFiring}, {13, To::kResolved}}));
}

TEST(TrackerTest, WhatIsOverBeforeItsTimeIsNoAlert) {
  EXPECT_EQ(Went(ARule(3), ".##..##."),
            (Times{{1, To::kPending}, {3, To::kInactive}, {5, To::kPending}, {7, To::kInactive}}));
}

TEST(TrackerTest, WithoutATimeItFiresAtOnce) {
  EXPECT_EQ(Went(ARule(0), ".#."), (Times{{1, To::kFiring}, {2, To::kResolved}}));
}

TEST(TrackerTest, AFigureThatSwingsAroundItsThresholdDoesNotFlap) {
  EXPECT_EQ(Went(ARule(3), "#-#-#-#-#-#-#-"), (Times{{0, To::kPending}, {4, To::kFiring}}));
  EXPECT_EQ(Went(ARule(3), "####.#..#.#..#....."),
            (Times{{0, To::kPending}, {3, To::kFiring}, {17, To::kResolved}}));
}

TEST(TrackerTest, BetweenAloneIsNoReason) { EXPECT_EQ(Went(ARule(1), "-----"), Times{}); }

TEST(TrackerTest, WhatCannotBeJudgedChangesNothingAndDoesNotCountAsHeld) {
  EXPECT_EQ(Went(ARule(3), "##????##"), (Times{{0, To::kPending}, {7, To::kFiring}}));
  EXPECT_EQ(Went(ARule(1), "##??????"), (Times{{0, To::kPending}, {1, To::kFiring}}));
}

TEST(TrackerTest, TheEndOfARunEndsAnAlertAtOnce) {
  const Rule rule = ARule(60);
  Tracker tracker(rule, std::nullopt);
  (void)tracker.Look(Seen(State::kHolds), 1, 0, false);
  ASSERT_TRUE(tracker.Look(Seen(State::kHolds), 1, 60 * kNsPerSecond, false));
  const auto change = tracker.Look(Seen(State::kOver), 1, 61 * kNsPerSecond, /*ended=*/true);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->to, To::kResolved);
}

TEST(TrackerTest, CountsWhatWasLostInTimeAndMoney) {
  const Rule rule = ARule(10);
  Tracker tracker(rule, Price{3600, "USD"});  // one a second
  for (int64_t t = 0; t < 10; ++t) (void)tracker.Look(Seen(State::kHolds, 0.5), 1, t * kNsPerSecond, false);
  const auto fired = tracker.Look(Seen(State::kHolds, 0.5), 1, 10 * kNsPerSecond, false);
  ASSERT_TRUE(fired);
  EXPECT_EQ(fired->alert.lost_ns, 5 * kNsPerSecond);
  EXPECT_NEAR(*fired->alert.lost_money, 5, 1e-9);
  EXPECT_THAT(InWords(fired->alert, Price{3600, "USD"}), ::testing::HasSubstr("(5.0 s lost, 5.00 USD)"));
}

TEST(TrackerTest, WhatBeganBeforeItWasLookedAtCountsFromThen) {
  const Rule rule = ARule(5);
  Tracker tracker(rule, std::nullopt);
  Sight sight = Seen(State::kHolds, 1);
  sight.since_ns = 10 * kNsPerSecond;
  (void)tracker.Look(sight, 1, 30 * kNsPerSecond, false);
  const auto fired = tracker.Look(sight, 1, 35 * kNsPerSecond, false);
  ASSERT_TRUE(fired);
  EXPECT_EQ(fired->alert.since_ns, 10 * kNsPerSecond);
  EXPECT_EQ(fired->alert.lost_ns, 25 * kNsPerSecond);
}

TEST(TrackerTest, AnAdoptedAlertIsNotFiredAgainButResolved) {
  const Rule rule = ARule(2);
  Tracker tracker(rule, std::nullopt);
  Alert alert;
  alert.rule = "a";
  alert.fired_ns = kNsPerSecond;
  tracker.Adopt(alert, 2 * kNsPerSecond);
  EXPECT_FALSE(tracker.Look(Seen(State::kHolds), 1, 3 * kNsPerSecond, false));
  EXPECT_FALSE(tracker.Look(Seen(State::kOver), 1, 4 * kNsPerSecond, false));
  const auto over = tracker.Look(Seen(State::kOver), 1, 6 * kNsPerSecond, false);
  ASSERT_TRUE(over);
  EXPECT_EQ(over->to, To::kResolved);
  EXPECT_EQ(over->alert.fired_ns, kNsPerSecond);
}

}  // namespace
}  // namespace fullbore::watch
