#include "measure/collect/limit.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace fullbore::collect {
namespace {

constexpr Limit kMinuteOr200Steps{60 * kNsPerSecond, 200};

TEST(LimitTest, NothingIsOverBeforeAnyOfIt) {
  EXPECT_FALSE(WhyOver(kMinuteOr200Steps, {60 * kNsPerSecond - 1, 199, false}));
  EXPECT_FALSE(WhyOver({}, {3600 * kNsPerSecond, 1'000'000, false}));
}

TEST(LimitTest, WhatComesFirstEndsIt) {
  EXPECT_EQ(WhyOver(kMinuteOr200Steps, {60 * kNsPerSecond, 0, false}), "after 1 min 0 s");
  EXPECT_EQ(WhyOver(kMinuteOr200Steps, {9 * kNsPerSecond, 203, false}), "after 203 steps, in 9.0 s");
}

TEST(LimitTest, AVerdictThatIsSureEndsItEarlier) {
  EXPECT_EQ(WhyOver(kMinuteOr200Steps, {34 * kNsPerSecond, 50, true}),
            "after 34 s with a verdict that is sure");
}

}  // namespace
}  // namespace fullbore::collect
