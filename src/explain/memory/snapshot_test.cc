#include "explain/memory/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "explain/memory/testing/made_snapshot.h"

namespace fullbore::memory {
namespace {

using ::testing::HasSubstr;

TEST(SnapshotTest, ReadsSegmentsBlocksAndEvents) {
  const auto snapshot = ParseSnapshot(MadeSnapshot());
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().text;
  ASSERT_EQ(snapshot->devices.size(), 1u);
  const Device& device = snapshot->devices[0];
  EXPECT_EQ(device.index, 1);
  ASSERT_EQ(device.segments.size(), 1u);
  EXPECT_TRUE(device.segments[0].small);
  ASSERT_EQ(device.segments[0].blocks.size(), 2u);
  EXPECT_EQ(device.segments[0].blocks[0].requested, 1000);
  EXPECT_EQ(device.segments[0].blocks[1].address, 4096u + (1 << 20));
  ASSERT_EQ(device.events.size(), 2u);
  EXPECT_EQ(device.events[0].action, Event::Action::kAllocate);
  EXPECT_EQ(device.events[0].stream, 7u);
  EXPECT_EQ(device.events[1].action, Event::Action::kOutOfMemory);
  EXPECT_EQ(device.events[1].address, 77u);
  EXPECT_EQ(snapshot->frames[0].line, 42);
}

TEST(SnapshotTest, StacksThatAreAlikeAreOne) {
  const auto snapshot = ParseSnapshot(MadeSnapshot());
  EXPECT_EQ(snapshot->stacks.size(), 2u);  // the empty one, and that of the block and of the event
  EXPECT_EQ(snapshot->devices[0].segments[0].blocks[0].stack, snapshot->devices[0].events[0].stack);
}

TEST(SnapshotTest, LeavesOutASegmentWhoseBlocksDoNotFillIt) {
  const auto snapshot = ParseSnapshot(MadeSnapshot(5));
  ASSERT_TRUE(snapshot.ok());
  EXPECT_TRUE(snapshot->devices[0].segments.empty());
  ASSERT_EQ(snapshot->messages.size(), 1u);
  EXPECT_THAT(snapshot->messages[0], HasSubstr("1 segments were left out"));
}

TEST(SnapshotTest, LeavesOutSizesThatNoDeviceHas) {
  EXPECT_TRUE(ParseSnapshot(MadeSnapshot(int64_t{1} << 60))->devices[0].segments.empty());
  EXPECT_TRUE(ParseSnapshot(MadeSnapshot(-512))->devices[0].segments.empty());
}

TEST(SnapshotTest, SaysWhatAnotherPickleIsNot) {
  const auto snapshot = ParseSnapshot(std::string_view("\x80\x04}.", 4));
  ASSERT_FALSE(snapshot.ok());
  EXPECT_THAT(snapshot.error().text, HasSubstr("none of a memory snapshot"));
}

TEST(SnapshotTest, IsAnErrorCutShortAnywhere) {
  const std::string sample = MadeSnapshot();
  for (size_t size = 0; size < sample.size(); ++size)
    EXPECT_FALSE(ParseSnapshot(std::string_view(sample).substr(0, size)).ok()) << size;
}

}  // namespace
}  // namespace fullbore::memory
