#include "agent/devices.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/clock.h"

namespace fullbore::agent {
namespace {

Holder Job(const std::string& number) { return {Kind::kJob, number, "", "", "", {}}; }

class DevicesTest : public testing::Test {
 protected:
  void Look(double seconds, std::vector<Use> uses) {
    device_.Update(static_cast<int64_t>(seconds * 1e9), std::optional(std::move(uses)));
  }
  const Hold& Of(const std::string& job) { return device_.holds().at(Job(job)); }
  double In(const std::string& job, State state) { return Of(job).seconds[static_cast<size_t>(state)]; }

  Device device_;
};

TEST_F(DevicesTest, TheTailCountsFromTheLastWork) {
  Look(0, {{Job("1"), 1, {}, true}});
  Look(5, {{Job("1"), 1, {}, true}});
  for (int t = 10; t <= 100; t += 5) Look(t, {{Job("1"), 1, {}, false}});
  EXPECT_EQ(Of("1").idle_ns, 95 * kNsPerSecond);
  EXPECT_TRUE(Of("1").worked);
  Look(105, {{Job("1"), 1, {}, true}});
  EXPECT_EQ(Of("1").idle_ns, 0);
}

TEST_F(DevicesTest, WhoHasNeverWorkedIdlesSinceItHoldsTheDevice) {
  Look(0, {{Job("1"), 1, {}, true}});
  Look(5, {{Job("2"), 1, {}, false}});
  Look(25, {{Job("2"), 1, {}, false}});
  EXPECT_EQ(Of("2").idle_ns, 20 * kNsPerSecond) << "not since the work of another";
  EXPECT_FALSE(Of("2").worked);
  EXPECT_FALSE(device_.holds().contains(Job("1")));
}

TEST_F(DevicesTest, TheWorkOfWhoHeldItBeforeIsNotTheNextOnes) {
  Look(0, {{Job("1"), 1, {}, true}});
  Look(5, {{Job("2"), 1, {}, true}});
  EXPECT_FALSE(Of("2").worked);
  Look(10, {{Job("2"), 1, {}, true}});
  EXPECT_TRUE(Of("2").worked);
}

TEST_F(DevicesTest, HeldWithoutAProcessIsCountedFromTheLastOne) {
  Look(0, {{Job("1"), 2, {}, true}});
  Look(10, {{Job("1"), 0, {}, {}}});
  Look(20, {{Job("1"), 0, {}, {}}});
  EXPECT_EQ(Of("1").without_process_ns, 20 * kNsPerSecond);
  EXPECT_EQ(Of("1").idle_ns, 20 * kNsPerSecond);
  Look(25, {{Job("1"), 1, {}, false}});
  EXPECT_EQ(Of("1").without_process_ns, 0);
}

TEST_F(DevicesTest, TheStatesSumToTheTimeThatItWasHeld) {
  Look(0, {{Job("1"), 1, {}, true}, {Job("2"), 1, {}, false}});
  Look(10, {{Job("1"), 1, {}, true}, {Job("2"), 1, {}, false}});
  Look(16, {{Job("1"), 1, {}, false}, {Job("2"), 0, {}, false}});
  Look(20, {{Job("1"), 1, {}, {}}, {Job("2"), 0, {}, {}}});
  EXPECT_DOUBLE_EQ(In("1", State::kBusy), 5);
  EXPECT_DOUBLE_EQ(In("1", State::kIdle), 3);
  EXPECT_DOUBLE_EQ(In("1", State::kUnknown), 2);
  EXPECT_DOUBLE_EQ(In("2", State::kNoProcess), 5);
  double sum = 0;
  for (const auto& [holder, hold] : device_.holds())
    sum += std::accumulate(hold.seconds.begin(), hold.seconds.end(), 0.0);
  EXPECT_DOUBLE_EQ(sum, 20);
}

TEST_F(DevicesTest, WhatIsNotKnownIsAbsent) {
  Look(0, {{Job("1"), 1, {}, {}}});
  Look(5, {{Job("1"), 1, {}, {}}});
  EXPECT_FALSE(Of("1").idle_ns);
  EXPECT_DOUBLE_EQ(In("1", State::kUnknown), 5);
}

TEST_F(DevicesTest, ADeviceThatDoesNotSayKeepsItsHolders) {
  Look(0, {{Job("1"), 1, {}, true}});
  device_.Update(5 * kNsPerSecond, std::nullopt);
  EXPECT_DOUBLE_EQ(In("1", State::kUnknown), 5);
  EXPECT_EQ(device_.holds().size(), 1U);
}

TEST_F(DevicesTest, ALongGapIsNotTakenForTheStateAfterIt) {
  Look(0, {{Job("1"), 1, {}, true}});
  Look(600, {{Job("1"), 1, {}, true}});
  EXPECT_DOUBLE_EQ(In("1", State::kUnknown), 600);
  EXPECT_DOUBLE_EQ(In("1", State::kBusy), 0);
}

TEST_F(DevicesTest, AClockThatStandsStillCountsNothing) {
  Look(5, {{Job("1"), 1, {}, true}});
  Look(5, {{Job("1"), 1, {}, true}});
  EXPECT_DOUBLE_EQ(In("1", State::kBusy), 0);
}

}  // namespace
}  // namespace fullbore::agent
