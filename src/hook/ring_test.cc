#include "hook/ring.h"

#include <gtest/gtest.h>

#include <list>
#include <set>
#include <thread>
#include <vector>

namespace fullbore::hook {
namespace {

using record::ChannelRecord;
using record::EventKind;

// The file of a ring, in memory.
class RingTest : public testing::Test {
 protected:
  static constexpr uint32_t kCapacity = 8;

  Ring& Make(uint32_t capacity) {
    file_.assign(record::kChannelHeaderBytes + size_t{capacity} * sizeof(ChannelRecord), 0);
    return ring_.emplace_back(file_.data(), record::kChannelHeaderBytes, capacity);
  }
  ChannelRecord At(size_t slot) const {
    ChannelRecord found;
    std::memcpy(&found, file_.data() + record::kChannelHeaderBytes + slot * sizeof found, sizeof found);
    return found;
  }
  static ChannelRecord Step(int64_t a, uint32_t thread = 0) {
    return {static_cast<uint16_t>(EventKind::kOptimizer), 3, thread, 100, 200, a, 2 * a, 3 * a, 4 * a, 99};
  }

  std::vector<char> file_;
  std::list<Ring> ring_;
};

TEST_F(RingTest, ARecordIsWrittenAsTheFormatSays) {
  Make(kCapacity).Write(Step(7, 5));
  const ChannelRecord found = At(0);
  EXPECT_EQ(found.kind, static_cast<uint16_t>(EventKind::kOptimizer));
  EXPECT_EQ(found.id, 3);
  EXPECT_EQ(found.thread, 5u);
  EXPECT_EQ(found.begin_ns, 100);
  EXPECT_EQ(found.end_ns, 200);
  EXPECT_EQ((std::vector{found.a, found.b, found.c, found.d}), (std::vector<int64_t>{7, 14, 21, 28}));
  EXPECT_EQ(found.sequence, 1u) << "the writer numbers, not the caller";
  EXPECT_EQ(At(1).sequence, 0u);
}

TEST_F(RingTest, WrapsAroundAndNeverTouchesTheHeader) {
  Ring& ring = Make(kCapacity);
  for (int i = 1; i <= 20; ++i) ring.Write(Step(i));
  EXPECT_EQ(ring.written(), 20u);
  for (size_t slot = 0; slot < kCapacity; ++slot) {
    const uint64_t expected = slot < 4 ? 17 + slot : 9 + slot;
    EXPECT_EQ(At(slot).sequence, expected);
    EXPECT_EQ(At(slot).a, static_cast<int64_t>(expected));
  }
  for (uint32_t i = 0; i < record::kChannelHeaderBytes; ++i) ASSERT_EQ(file_[i], 0);
}

TEST_F(RingTest, SeveralThreadsWriteEachRecordOnce) {
  constexpr uint32_t kThreads = 4, kEach = 20'000;
  Ring& ring = Make(kThreads * kEach);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&ring, thread] {
      for (uint32_t i = 0; i < kEach; ++i) ring.Write(Step(i, thread));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ring.written(), kThreads * kEach);
  std::set<std::pair<uint32_t, int64_t>> seen;
  for (size_t slot = 0; slot < kThreads * kEach; ++slot) {
    const ChannelRecord found = At(slot);
    ASSERT_EQ(found.sequence, slot + 1);
    ASSERT_EQ(found.d, 4 * found.a) << "no record is mixed from two";
    seen.emplace(found.thread, found.a);
  }
  EXPECT_EQ(seen.size(), kThreads * kEach);
}

}  // namespace
}  // namespace fullbore::hook
