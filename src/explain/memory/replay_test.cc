#include "explain/memory/replay.h"

#include <gtest/gtest.h>

#include "explain/memory/testing/events.h"

namespace fullbore::memory {
namespace {

constexpr int64_t kMiB = kTestMiB;

// Blocks of growing size, each given back before the next: no segment of the ones before is large enough.
Device Growing() {
  DeviceMaker maker;
  for (uint64_t i = 1; i <= 8; ++i) {
    const auto bytes = static_cast<int64_t>(i) * 20 * kMiB;
    maker.Segment(i << 32, bytes).Allocate(i << 32, bytes).Free(i << 32, bytes).Stands(i << 32, bytes, {});
  }
  return maker.Take();
}

ReplayOptions AsRecorded() {
  ReplayOptions options;
  options.as_recorded = true;
  return options;
}

TEST(ReplayTest, ReservesWhatWasReservedToTheByte) {
  const Replayed replayed = Replay(HistoryOf(Growing()), AsRecorded());
  EXPECT_EQ(replayed.off, 0);
  EXPECT_EQ(replayed.peak_reserved, 720 * kMiB);
  EXPECT_EQ(replayed.peak_allocated, 160 * kMiB);
  EXPECT_EQ(replayed.driver_calls, 8);
}

TEST(ReplayTest, SaysByHowMuchItDiffersFromTheRecord) {
  const Replayed replayed = Replay(HistoryOf(DeviceMaker()
                                                 .Segment(0, 40 * kMiB)
                                                 .Allocate(0, 5 * kMiB)
                                                 .Stands(0, 40 * kMiB, {{0, 5 * kMiB}})
                                                 .Take()),
                                   AsRecorded());
  EXPECT_EQ(replayed.off, 20 * kMiB);
}

TEST(ReplayTest, OnlySegmentsGoThatWentInTheRecord) {
  const Replayed replayed = Replay(HistoryOf(DeviceMaker()
                                                 .Segment(0, 40 * kMiB)
                                                 .Allocate(0, 40 * kMiB)
                                                 .Segment(64 * kMiB, 60 * kMiB)
                                                 .Allocate(64 * kMiB, 60 * kMiB)
                                                 .Free(0, 40 * kMiB)
                                                 .Free(64 * kMiB, 60 * kMiB)
                                                 .Do(Event::Action::kSegmentFree, 64 * kMiB, 60 * kMiB)
                                                 .Allocate(0, 30 * kMiB)
                                                 .Stands(0, 40 * kMiB, {{0, 30 * kMiB}})
                                                 .Take()),
                                   AsRecorded());
  EXPECT_EQ(replayed.off, 0);
  EXPECT_EQ(replayed.driver_calls, 2) << "the first segment was not made again";
}

TEST(ReplayTest, KnowsWhatExpandableSegmentsWouldSave) {
  ReplayOptions options;
  options.settings.expandable_segments = true;
  const Replayed replayed = Replay(HistoryOf(Growing()), options);
  EXPECT_EQ(replayed.peak_reserved, 160 * kMiB);
  EXPECT_FALSE(replayed.failed);
}

TEST(ReplayTest, SaysWhichRequestWouldNotFit) {
  ReplayOptions options;
  options.capacity = 100 * kMiB;
  const Replayed replayed = Replay(HistoryOf(Growing()), options);
  EXPECT_EQ(replayed.failed, 21u);  // the sixth block, of 120 MiB
  EXPECT_GT(replayed.retries, 0);
}

TEST(ReplayTest, PutsWhatStoodBeforeWhereItStood) {
  const Device device = DeviceMaker()
                            .Stands(0, 20 * kMiB, {{0, 9 * kMiB}, {9 * kMiB, 9 * kMiB}})
                            .Allocate(18 * kMiB, 2 * kMiB)
                            .Free(18 * kMiB, 2 * kMiB)
                            .Take();
  const Replayed replayed = Replay(HistoryOf(device), AsRecorded());
  EXPECT_EQ(replayed.off, 0);
  EXPECT_EQ(replayed.peak_reserved, 20 * kMiB);
  EXPECT_EQ(replayed.peak_allocated, 20 * kMiB);
}

TEST(ReplayTest, LeavesOutWhatLiesWithinSomethingElse) {
  Device device =
      DeviceMaker().Stands(0, 20 * kMiB, {{0, 9 * kMiB}, {0, 9 * kMiB}, {4 * kMiB, 30 * kMiB}}).Take();
  device.events.push_back({Event::Action::kAllocate, 1 << 30, kMiB, 0, 1, 0});
  EXPECT_FALSE(Replay(HistoryOf(device), AsRecorded()).failed);
}

TEST(ReplayTest, TakesOtherSizes) {
  const History history = HistoryOf(Growing());
  ReplayOptions options;
  for (const Life& life : history.lives) options.bytes.push_back(life.bytes * 2);
  EXPECT_EQ(Replay(history, options).peak_allocated, 320 * kMiB);
}

}  // namespace
}  // namespace fullbore::memory
