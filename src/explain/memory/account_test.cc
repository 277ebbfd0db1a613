#include "explain/memory/account.h"

#include <gtest/gtest.h>

#include "explain/memory/places.h"
#include "explain/memory/testing/events.h"

namespace fullbore::memory {
namespace {

constexpr int64_t kMiB = kTestMiB;

// A snapshot of one device, with the stacks train.py:1, train.py:2 ... beside the empty one.
MemorySnapshot SnapshotOf(Device device, size_t lines = 3) {
  MemorySnapshot snapshot;
  snapshot.stacks.emplace_back();
  for (uint32_t i = 0; i < lines; ++i) {
    snapshot.frames.push_back({"/home/me/train.py", "step", i + 1});
    snapshot.stacks.push_back({i});
  }
  snapshot.devices.push_back(std::move(device));
  return snapshot;
}

DeviceAccount AccountOf(Device device, const AccountOptions& options = {}) {
  return AccountsOf(SnapshotOf(std::move(device)), options).front();
}

// Weights of 30 MiB that stay, and of each step 40 MiB that go.
Device Steps(int steps, StackIndex kept_each_step = 0) {
  DeviceMaker maker;
  maker.Segment(0, 30 * kMiB).Allocate(0, 30 * kMiB, 1).Stands(0, 30 * kMiB, {{0, 30 * kMiB}});
  maker.Segment(1 << 30, 40 * kMiB).Stands(1 << 30, 40 * kMiB, {});
  for (int i = 0; i < steps; ++i) {
    maker.Allocate(1 << 30, 40 * kMiB, 2).Free(1 << 30, 40 * kMiB);
    if (kept_each_step == 0) continue;
    const auto address = (uint64_t{1} << 32) + static_cast<uint64_t>(i) * 12 * kMiB;
    maker.Segment(address, 12 * kMiB).Allocate(address, 12 * kMiB, kept_each_step);
    maker.Stands(address, 12 * kMiB, {{address, 12 * kMiB}});
  }
  return maker.Take();
}

TEST(AccountTest, SaysWhatStoodWhenItWasFullestByLine) {
  const DeviceAccount account = AccountOf(Steps(5));
  EXPECT_TRUE(account.complete);
  EXPECT_EQ(account.peak.moment.allocated, 70 * kMiB);
  EXPECT_EQ(account.peak.moment.reserved, 70 * kMiB);
  ASSERT_EQ(account.peak.lines.size(), 2u);
  EXPECT_EQ(account.peak.lines[0].place, "train.py:2 in step");
  EXPECT_EQ(account.peak.lines[0].bytes, 40 * kMiB);
}

TEST(AccountTest, ScalesWithTheBatchWhatComesAndGoes) {
  const DeviceAccount account = AccountOf(Steps(5), {{3}});
  EXPECT_EQ(account.scaled_bytes, 40 * kMiB);
  ASSERT_EQ(account.what_if.size(), 2u);
  EXPECT_EQ(account.what_if[1].name, "batch=3x");
  EXPECT_EQ(account.what_if[1].replayed.peak_allocated, 150 * kMiB);
}

TEST(AccountTest, FindsALineThatKeepsSomethingOfEachStep) {
  const DeviceAccount account = AccountOf(Steps(20, 3));
  ASSERT_EQ(account.growing.size(), 1u);
  EXPECT_EQ(account.growing[0].place, "train.py:3 in step");
  EXPECT_EQ(account.growing[0].blocks, 20);
}

TEST(AccountTest, TakesStatesThatAreMadeOnceForNoGrowth) {
  DeviceMaker maker;
  for (uint64_t i = 0; i < 40; ++i) {
    maker.Segment(i << 32, 12 * kMiB)
        .Allocate(i << 32, 12 * kMiB, 3)
        .Stands(i << 32, 12 * kMiB, {{i << 32, 12 * kMiB}});
  }
  maker.Segment(1, 40 * kMiB).Stands(1, 40 * kMiB, {});
  for (int i = 0; i < 200; ++i) maker.Allocate(1, 40 * kMiB, 2).Free(1, 40 * kMiB);
  EXPECT_TRUE(AccountOf(maker.Take()).growing.empty());
}

TEST(AccountTest, TellsNoGrowthWithoutStacks) {
  Device device = Steps(20, 3);
  for (Event& event : device.events) event.stack = 0;
  EXPECT_TRUE(AccountOf(std::move(device)).growing.empty());
}

TEST(AccountTest, SaysNothingOfOtherSettingsWhereItsReplayIsNotTheRecord) {
  const DeviceAccount account = AccountOf(
      DeviceMaker().Segment(0, 64 * kMiB).Allocate(0, 5 * kMiB).Stands(0, 64 * kMiB, {{0, 5 * kMiB}}).Take());
  EXPECT_FALSE(CanJudge(account));
  EXPECT_TRUE(account.what_if.empty());
}

TEST(AccountTest, SaysNothingOfOtherSettingsWhereGarbageWasCollected) {
  DeviceMaker maker;
  maker.Segment(0, 40 * kMiB).Allocate(0, 40 * kMiB).Free(0, 40 * kMiB);
  maker.Segment(1 << 30, 60 * kMiB)
      .Allocate(1 << 30, 60 * kMiB)
      .Stands(1 << 30, 60 * kMiB, {{1 << 30, 60 * kMiB}});
  const auto account_of = [](DeviceMaker made, double threshold) {
    MemorySnapshot snapshot = SnapshotOf(made.Take());
    snapshot.settings.garbage_collection_threshold = threshold;
    return AccountsOf(snapshot).front();
  };
  DeviceMaker collected = maker;
  collected.Do(Event::Action::kSegmentFree, 0, 40 * kMiB);
  maker.Stands(0, 40 * kMiB, {});
  EXPECT_EQ(account_of(collected, 0.5).as_recorded->off, 0);
  EXPECT_FALSE(CanJudge(account_of(collected, 0.5)));
  EXPECT_TRUE(CanJudge(account_of(collected, 0))) << "an emptied cache";
  EXPECT_TRUE(CanJudge(account_of(maker, 0.5))) << "nothing went";
}

TEST(AccountTest, SaysNothingOfOtherSettingsWhereTheRecordBeginsLate) {
  const DeviceAccount account = AccountOf(DeviceMaker()
                                              .Stands(0, 100 * kMiB, {{0, 9 * kMiB}})
                                              .Allocate(9 * kMiB, 2 * kMiB)
                                              .Free(9 * kMiB, 2 * kMiB)
                                              .Take());
  EXPECT_FALSE(account.complete);
  EXPECT_TRUE(account.what_if.empty());
}

TEST(AccountTest, KnowsWhatStandsWhereNoEventWasRecorded) {
  const DeviceAccount account = AccountOf(DeviceMaker().Stands(0, 20 * kMiB, {{0, 5 * kMiB}}).Take());
  EXPECT_EQ(account.peak.moment.allocated, 5 * kMiB);
  EXPECT_EQ(account.peak.lines[0].bytes, 5 * kMiB);
  EXPECT_FALSE(account.as_recorded);
}

TEST(AccountTest, TellsWhatTheDeviceHadWhereItRefused) {
  const DeviceAccount account = AccountOf(DeviceMaker()
                                              .Segment(0, 20 * kMiB)
                                              .Allocate(0, 20 * kMiB, 1)
                                              .Do(Event::Action::kOutOfMemory, 3 * kMiB, 64 * kMiB, 2)
                                              .Stands(0, 20 * kMiB, {{0, 20 * kMiB}})
                                              .Take());
  EXPECT_EQ(account.capacity, 23 * kMiB);
  ASSERT_EQ(account.refused.size(), 1u);
  EXPECT_EQ(account.refused[0].place, "train.py:2 in step");
  ASSERT_EQ(account.what_if.size(), 1u);
  EXPECT_TRUE(account.what_if[0].replayed.failed);
}

TEST(PlacesTest, PrefersTheUsersOwnLine) {
  MemorySnapshot snapshot;
  snapshot.frames = {{"??", "at::empty", 0},
                     {"/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", "forward", 134},
                     {"/home/me/model.py", "forward", 42}};
  snapshot.stacks = {{}, {0, 1, 2}, {0, 1}, {0}};
  EXPECT_EQ(PlaceOf(snapshot, 1), "model.py:42 in forward");
  EXPECT_EQ(PlaceOf(snapshot, 2), "linear.py:134 in forward");
  EXPECT_EQ(PlaceOf(snapshot, 3), "");
}

}  // namespace
}  // namespace fullbore::memory
