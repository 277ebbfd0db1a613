#include "explain/memory/history.h"

#include <gtest/gtest.h>

#include "explain/memory/testing/events.h"

namespace fullbore::memory {
namespace {

using Action = Event::Action;
constexpr int64_t kMiB = kTestMiB;

std::vector<Act::Kind> KindsOf(const History& history) {
  std::vector<Act::Kind> kinds;
  for (const Act& act : history.acts) kinds.push_back(act.kind);
  return kinds;
}

TEST(HistoryTest, JoinsWhatWasAskedForWithWhenItWasGivenBack) {
  const History history =
      HistoryOf(DeviceMaker().Segment(0, 20 * kMiB).Allocate(0, 5 * kMiB, 3).Free(0, 5 * kMiB).Take());
  ASSERT_EQ(history.lives.size(), 1u);
  EXPECT_EQ(history.lives[0].born, 1u);
  EXPECT_EQ(history.lives[0].freed, 3u);
  EXPECT_EQ(history.lives[0].stack, 3u);
}

TEST(HistoryTest, ReckonsBackWhatWasReserved) {
  const History history = HistoryOf(DeviceMaker()
                                        .Stands(64 * kMiB, 20 * kMiB, {})
                                        .Segment(0, 20 * kMiB)
                                        .Allocate(0, 5 * kMiB)
                                        .Free(0, 5 * kMiB)
                                        .Do(Action::kSegmentFree, 0, 20 * kMiB)
                                        .Take());
  EXPECT_EQ(history.reserved_before, 20 * kMiB);
  EXPECT_EQ(history.reserved, (std::vector<int64_t>{40 * kMiB, 40 * kMiB, 40 * kMiB, 40 * kMiB, 20 * kMiB}));
  EXPECT_EQ(history.peak_reserved(), 40 * kMiB);
  ASSERT_EQ(history.segments.size(), 1u);
  EXPECT_EQ(history.segments[0].address, static_cast<uint64_t>(64 * kMiB));
}

TEST(HistoryTest, KnowsWhatWasThereBeforeTheRecordBegan) {
  const History history =
      HistoryOf(DeviceMaker().Stands(0, 20 * kMiB, {{0, 5 * kMiB}}).Free(5 * kMiB, 7 * kMiB).Take());
  EXPECT_FALSE(history.complete());
  ASSERT_EQ(history.earlier.size(), 2u);
  EXPECT_EQ(history.lives[history.earlier[0]].bytes, 5 * kMiB);
  EXPECT_EQ(history.lives[history.earlier[0]].freed, std::nullopt);
  EXPECT_EQ(history.lives[history.earlier[1]].freed, 1u);
}

TEST(HistoryTest, IsCompleteFromTheFirstSegmentOn) {
  EXPECT_TRUE(HistoryOf(DeviceMaker()
                            .Stands(0, 20 * kMiB, {{0, 5 * kMiB}})
                            .Segment(0, 20 * kMiB)
                            .Allocate(0, 5 * kMiB)
                            .Take())
                  .complete());
}

TEST(HistoryTest, TellsAnEmptiedCacheFromADriverThatRefused) {
  const auto seen = [](StackIndex gives, StackIndex asks) {
    return KindsOf(HistoryOf(DeviceMaker()
                                 .Do(Action::kSegmentFree, 0, 20 * kMiB, gives)
                                 .Do(Action::kSegmentFree, 64 * kMiB, 20 * kMiB, gives)
                                 .Do(Action::kSegmentAllocate, 0, 40 * kMiB, asks)
                                 .Allocate(0, 40 * kMiB, 5)
                                 .Take()));
  };
  const auto both = Act::Kind::kGiveBack;
  EXPECT_EQ(seen(3, 3), (std::vector{Act::Kind::kRetry, both, both, Act::Kind::kAllocate}));
  EXPECT_EQ(seen(0, 0), (std::vector{Act::Kind::kRetry, both, both, Act::Kind::kAllocate}))
      << "a backward pass";
  EXPECT_EQ(seen(2, 3), (std::vector{Act::Kind::kRelease, both, both, Act::Kind::kAllocate}))
      << "empty_cache()";
}

TEST(HistoryTest, TellsNoRefusalsWithoutLines) {
  const auto history = HistoryOf(DeviceMaker()
                                     .Do(Action::kSegmentFree, 0, 20 * kMiB)
                                     .Segment(0, 40 * kMiB)
                                     .Allocate(0, 40 * kMiB)
                                     .Take());
  EXPECT_EQ(KindsOf(history), (std::vector{Act::Kind::kRelease, Act::Kind::kGiveBack, Act::Kind::kAllocate}));
}

TEST(HistoryTest, NumbersTheSegmentsThatGo) {
  const History history = HistoryOf(DeviceMaker()
                                        .Segment(0, 20 * kMiB)
                                        .Segment(64 * kMiB, 40 * kMiB)
                                        .Do(Action::kSegmentFree, 0, 20 * kMiB)
                                        .Segment(0, 30 * kMiB)
                                        .Do(Action::kSegmentFree, 0, 30 * kMiB)
                                        .Do(Action::kSegmentFree, 64 * kMiB, 40 * kMiB)
                                        .Take());
  std::vector<size_t> numbers;
  for (const Act& act : history.acts)
    if (act.kind == Act::Kind::kGiveBack) numbers.push_back(act.life);
  EXPECT_EQ(numbers, (std::vector<size_t>{0, 2, 1})) << "one that was made at the same place is another one";
}

TEST(HistoryTest, KeepsWhereTheDriverRefused) {
  const History history =
      HistoryOf(DeviceMaker().Stands(0, 20 * kMiB, {}).Do(Action::kOutOfMemory, 3 * kMiB, 64 * kMiB).Take());
  ASSERT_EQ(history.refusals.size(), 1u);
  EXPECT_EQ(history.refusals[0].asked, 64 * kMiB);
  EXPECT_EQ(history.refusals[0].device_free, 3 * kMiB);
  EXPECT_EQ(history.refusals[0].reserved, 20 * kMiB);
}

}  // namespace
}  // namespace fullbore::memory
