#include "timeline/missing_events.h"

#include <gtest/gtest.h>

#include "timeline/host_steps.h"
#include "timeline/testing/host_events.h"

namespace fullbore::timeline {
namespace {

using record::ChannelRecord;
using record::EventKind;
using record::Step;
using testing::Feed;
using testing::UsualStep;

// Ten steps, one every 100 ns, from a ring that lapped its reader: it has the first one, the begin of the second and the
// last two events.
std::vector<ChannelRecord> OfARingThatLapped(bool has_optimizer) {
  std::vector<ChannelRecord> events;
  for (int64_t at = 1000; at < 2000; at += 100) {
    for (ChannelRecord event : UsualStep(at)) {
      if (!has_optimizer && event.kind == static_cast<uint16_t>(EventKind::kOptimizer)) continue;
      event.sequence = events.size() + 1;
      events.push_back(event);
    }
  }
  events.erase(events.begin() + (has_optimizer ? 5 : 4), events.end() - 2);
  return events;
}

TEST(MissingEventsTest, WhatLiesBetweenTwoEndsIsNoStepWhereEventsAreMissing) {
  HostSteps steps;
  const std::vector<Step> whole = Feed(steps, OfARingThatLapped(true));
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].wall_ns, 95);
  EXPECT_EQ(steps.missed_ns(), 900) << "nine steps, of which the last lost its beginning";
  auto next = UsualStep(2000);
  for (ChannelRecord& event : next) event.sequence = 41 + static_cast<uint64_t>(&event - next.data());
  EXPECT_EQ(Feed(steps, next).size(), 1u) << "nothing is missing in it";
  EXPECT_EQ(steps.missed_ns(), 900);
}

TEST(MissingEventsTest, ABatchInWhichEventsAreMissingIsNoStepEither) {
  HostSteps steps;
  for (const ChannelRecord& event : OfARingThatLapped(false)) steps.OnEvent(event);
  steps.TakeBatchesForSteps();
  EXPECT_EQ(steps.TakeSteps(true).size(), 1u) << "the first, up to the second one's batch";
  EXPECT_EQ(steps.missed_ns(), 890);
}

}  // namespace
}  // namespace fullbore::timeline
