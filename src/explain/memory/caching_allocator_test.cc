#include "explain/memory/caching_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace fullbore::memory {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

AllocatorSettings Expandable() {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  return settings;
}

TEST(CachingAllocatorTest, CutsSmallBlocksFromSegmentsOfTwoMiB) {
  CachingAllocator allocator({});
  ASSERT_TRUE(allocator.Allocate(1, 0));
  EXPECT_EQ(allocator.allocated(), 512);
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
  ASSERT_TRUE(allocator.Allocate(kMiB, 0));
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
  ASSERT_TRUE(allocator.Allocate(kMiB, 0));
  EXPECT_EQ(allocator.reserved(), 4 * kMiB);
}

TEST(CachingAllocatorTest, MakesSegmentsOfTwentyMiBAndOfTheirOwn) {
  CachingAllocator allocator({});
  ASSERT_TRUE(allocator.Allocate(kMiB + 1, 0));
  EXPECT_EQ(allocator.reserved(), 20 * kMiB);
  ASSERT_TRUE(allocator.Allocate(9 * kMiB, 0));  // beside the first
  EXPECT_EQ(allocator.reserved(), 20 * kMiB);
  ASSERT_TRUE(allocator.Allocate(11 * kMiB + 1, 0));  // more than 10 MiB, rounded to 2
  EXPECT_EQ(allocator.reserved(), 32 * kMiB);
}

TEST(CachingAllocatorTest, GivesABlockWhole_WhereLittleWouldBeLeft) {
  CachingAllocator allocator({});
  const auto block = allocator.Allocate(12 * kMiB, 0);
  allocator.Free(*block);
  ASSERT_TRUE(allocator.Allocate(11 * kMiB, 0));
  EXPECT_EQ(allocator.allocated(), 12 * kMiB);
}

TEST(CachingAllocatorTest, MergesNeighboursThatAreFree) {
  CachingAllocator allocator({});
  const auto a = allocator.Allocate(5 * kMiB, 0), b = allocator.Allocate(5 * kMiB, 0),
             c = allocator.Allocate(5 * kMiB, 0);
  allocator.Free(*a);
  allocator.Free(*c);
  EXPECT_EQ(allocator.cached().pieces, 2);
  EXPECT_EQ(allocator.cached().largest, 10 * kMiB);  // c and what was never used
  allocator.Free(*b);
  EXPECT_EQ(allocator.cached().pieces, 1);
  EXPECT_EQ(allocator.cached().bytes, 20 * kMiB);
}

TEST(CachingAllocatorTest, KeepsStreamsApart) {
  CachingAllocator allocator({});
  allocator.Free(*allocator.Allocate(5 * kMiB, 0));
  ASSERT_TRUE(allocator.Allocate(5 * kMiB, 7));
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
}

TEST(CachingAllocatorTest, GivesBackWhatIsCachedBeforeItRefuses) {
  CachingAllocator allocator({}, 100 * kMiB);
  const auto first = allocator.Allocate(60 * kMiB, 0);
  allocator.Free(*first);
  const auto second = allocator.Allocate(80 * kMiB, 0);
  ASSERT_TRUE(second);
  EXPECT_EQ(allocator.reserved(), 80 * kMiB);
  EXPECT_EQ(allocator.retries(), 1);
  EXPECT_FALSE(allocator.Allocate(30 * kMiB, 0));
  EXPECT_EQ(allocator.reserved(), 80 * kMiB);
}

TEST(CachingAllocatorTest, DoesNotSplitBlocksAboveTheLimit) {
  AllocatorSettings settings;
  settings.max_split_bytes = 64 * kMiB;
  CachingAllocator allocator(settings);
  allocator.Free(*allocator.Allocate(100 * kMiB, 0));
  ASSERT_TRUE(allocator.Allocate(30 * kMiB, 0));  // not from the 100
  EXPECT_EQ(allocator.reserved(), 130 * kMiB);
  ASSERT_TRUE(allocator.Allocate(90 * kMiB, 0));  // takes the 100 whole
  EXPECT_EQ(allocator.allocated(), 130 * kMiB);
}

TEST(CachingAllocatorTest, RoundsToPartsOfPowersOfTwoWhereThatIsSet) {
  AllocatorSettings settings;
  settings.divisions_of_power.fill(4);
  const CachingAllocator allocator(settings);
  EXPECT_EQ(allocator.Rounded(100), 512);
  EXPECT_EQ(allocator.Rounded(1200 * kKiB), 1280 * kKiB);
  EXPECT_EQ(allocator.Rounded(1280 * kKiB), 1280 * kKiB);
  EXPECT_EQ(allocator.Rounded(1024 * kKiB), 1024 * kKiB);
  EXPECT_EQ(CachingAllocator({}).Rounded(1200 * kKiB + 1), 1200 * kKiB + 512);
}

TEST(CachingAllocatorTest, GrowsAnExpandableSegmentByWhatIsMissing) {
  CachingAllocator allocator(Expandable());
  const auto first = allocator.Allocate(30 * kMiB, 0);
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);  // two pages of 20 MiB
  allocator.Free(*first);
  ASSERT_TRUE(allocator.Allocate(45 * kMiB, 0));
  EXPECT_EQ(allocator.reserved(), 60 * kMiB);
  EXPECT_EQ(allocator.allocated(), 45 * kMiB);
}

TEST(CachingAllocatorTest, MapsNoMoreOfAnExpandableSegmentThanTheBlockTakes) {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  CachingAllocator allocator(settings);
  ASSERT_TRUE(allocator.Allocate(10 * kMiB + kMiB / 2, 0));
  ASSERT_TRUE(allocator.Allocate(29 * kMiB + kMiB / 4, 0));  // of which 9.5 MiB are free already
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
}

TEST(CachingAllocatorTest, GivesBackWholePagesOfAnExpandableSegment) {
  CachingAllocator allocator(Expandable());
  const auto a = allocator.Allocate(30 * kMiB, 0), b = allocator.Allocate(30 * kMiB, 0);
  EXPECT_EQ(allocator.reserved(), 60 * kMiB);
  allocator.Free(*a);
  allocator.ReleaseCached();  // the first page; the second is half of b's
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
  allocator.Free(*b);
  allocator.ReleaseCached();
  EXPECT_EQ(allocator.reserved(), 0);
  ASSERT_TRUE(allocator.Allocate(30 * kMiB, 0));
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
}

TEST(CachingAllocatorTest, TakesOverASegmentWithWhatIsInUseInIt) {
  CachingAllocator allocator({});
  Segment segment;
  segment.bytes = 20 * kMiB;
  const auto blocks = allocator.Adopt(segment, {{2 * kMiB, 3 * kMiB}, {5 * kMiB, 4 * kMiB}});
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(allocator.allocated(), 7 * kMiB);
  EXPECT_EQ(allocator.cached().pieces, 2);
  allocator.Free(blocks[0]);
  EXPECT_EQ(allocator.cached().pieces, 2);  // merged with what was free before it
  allocator.Free(blocks[1]);
  EXPECT_EQ(allocator.cached().largest, 20 * kMiB);
}

// Whatever is asked of it: what is in use fits into what is reserved, nothing is lost, and all of it goes back.
TEST(CachingAllocatorTest, AddsUpUnderAnyRequests) {
  for (const bool expandable : {false, true}) {
    std::mt19937_64 random(expandable ? 1 : 2);
    AllocatorSettings settings;
    settings.expandable_segments = expandable;
    CachingAllocator allocator(settings, 3000 * kMiB);
    std::vector<CachingAllocator::BlockIndex> alive;
    for (int i = 0; i < 20'000; ++i) {
      if (!alive.empty() && random() % 2 == 0) {
        const size_t at = random() % alive.size();
        allocator.Free(alive[at]);
        alive[at] = alive.back();
        alive.pop_back();
      } else if (const auto block = allocator.Allocate(
                     static_cast<int64_t>(1 + random() % (int64_t{1} << (random() % 27))), random() % 2)) {
        alive.push_back(*block);
      }
      ASSERT_EQ(allocator.allocated() + allocator.cached().bytes, allocator.reserved()) << i;
      if (random() % 1000 == 0) allocator.ReleaseCached();
    }
    for (const auto block : alive) allocator.Free(block);
    allocator.ReleaseCached();
    EXPECT_EQ(allocator.allocated(), 0);
    EXPECT_EQ(allocator.reserved(), 0);
  }
}

}  // namespace
}  // namespace fullbore::memory
