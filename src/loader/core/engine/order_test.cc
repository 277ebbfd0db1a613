#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "loader/core/engine/batch_plan.h"
#include "loader/core/engine/permutation.h"
#include "loader/core/engine/sample_order.h"

namespace fullbore::loader {
namespace {

TEST(Permutation, GivesEachElementOnceForEverySize) {
  for (uint64_t n = 1; n <= 300; ++n) {
    const Permutation permutation(n, 7 * n);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i) seen.insert(permutation.At(i));
    ASSERT_EQ(seen.size(), n);
    ASSERT_EQ(*seen.rbegin(), n - 1);
  }
}

TEST(Permutation, DependsOnItsKeyAndNothingElse) {
  const Permutation a(1000, 1), same(1000, 1), other(1000, 2);
  int equal = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.At(i), same.At(i));
    equal += a.At(i) == other.At(i);
  }
  EXPECT_LT(equal, 10);  // one is expected by chance
}

// A shuffle in name only (a rotation, a stride) keeps neighbours at one distance; here each distance is rare.
TEST(Permutation, SeparatesNeighbours) {
  constexpr uint64_t n = 10'000;
  const Permutation permutation(n, 3);
  std::vector<int> distances(n, 0);
  for (uint64_t i = 0; i + 1 < n; ++i) ++distances[(permutation.At(i + 1) + n - permutation.At(i)) % n];
  EXPECT_LT(*std::max_element(distances.begin(), distances.end()), 12);
}

TEST(Permutation, PutsEachElementAnywhere) {
  constexpr uint64_t n = 8, keys = 8000;
  std::vector<int> first(n, 0);
  for (uint64_t key = 0; key < keys; ++key) ++first[Permutation(n, key).At(0)];
  for (const int count : first) EXPECT_NEAR(count, 1000, 130);  // over four standard deviations
}

TEST(SampleOrder, IsTheSourcesOwnWithoutShuffle) {
  const SampleOrder order({3, 4}, {.shuffle = false}, 5);
  for (uint64_t i = 0; i < 7; ++i) EXPECT_EQ(order.At(i), i);
}

TEST(SampleOrder, DiffersBetweenEpochs) {
  const OrderOptions options{.seed = 1};
  const SampleOrder zero({100}, options, 0), one({100}, options, 1);
  int equal = 0;
  for (uint64_t i = 0; i < 100; ++i) equal += zero.At(i) == one.At(i);
  EXPECT_LT(equal, 8);
}

TEST(SampleOrder, VisitsFewShardsAtATimeWhenAskedTo) {
  const std::vector<uint64_t> blocks = {5, 9, 0, 7, 3, 8, 6};
  const SampleOrder order(blocks, {.shuffle_blocks = 2, .seed = 4}, 0);
  std::vector<int> block_of;
  for (size_t block = 0; block < blocks.size(); ++block)
    block_of.insert(block_of.end(), blocks[block], static_cast<int>(block));
  std::set<uint64_t> seen;
  std::vector<std::set<int>> positions_of_block(blocks.size());
  for (uint64_t i = 0; i < order.size(); ++i) {
    seen.insert(order.At(i));
    positions_of_block[static_cast<size_t>(block_of[order.At(i)])].insert(static_cast<int>(i));
  }
  EXPECT_EQ(seen.size(), 38u);
  for (const auto& positions : positions_of_block) {
    if (positions.empty()) continue;
    EXPECT_LT(*positions.rbegin() - *positions.begin(), 17);  // at most two shards' samples
  }
}

std::vector<uint64_t> AllPositions(const BatchPlan::Cut& common, uint64_t upto_batches = ~uint64_t{0}) {
  std::vector<uint64_t> all;
  for (uint64_t rank = 0; rank < common.world_size; ++rank) {
    BatchPlan::Cut cut = common;
    cut.rank = rank;
    const BatchPlan plan(cut);
    for (uint64_t k = 0; k < std::min(plan.batches(), upto_batches); ++k) {
      const auto batch = plan.At(k);
      for (uint64_t i = 0; i < batch.valid; ++i) all.push_back(plan.PositionOf(batch, i));
    }
  }
  return all;
}

TEST(BatchPlan, CoversEveryPositionOnceWhateverTheSizes) {
  for (uint64_t samples : {1, 2, 7, 12, 13, 64, 100}) {
    for (uint64_t world : {1, 2, 3, 8}) {
      for (uint64_t batch : {1, 4, 5}) {
        for (LastBatch last : {LastBatch::kShort, LastBatch::kPad}) {
          const auto all = AllPositions({samples, 0, batch, 0, world, last});
          ASSERT_EQ(std::set<uint64_t>(all.begin(), all.end()).size(), samples);
          ASSERT_EQ(all.size(), samples);
        }
      }
    }
  }
}

TEST(BatchPlan, GivesEveryRankAsManyBatches) {
  for (uint64_t samples : {1, 5, 17, 31}) {
    std::set<uint64_t> counts;
    for (uint64_t rank = 0; rank < 4; ++rank) {
      const BatchPlan plan({samples, 0, 4, rank, 4, LastBatch::kShort});
      counts.insert(plan.batches());
      for (uint64_t k = 0; k < plan.batches(); ++k) EXPECT_GE(plan.At(k).rows, 1u);
    }
    EXPECT_EQ(counts.size(), 1u);
  }
}

TEST(BatchPlan, PadsToFullBatches) {
  const BatchPlan plan({10, 0, 4, 0, 1, LastBatch::kPad});
  ASSERT_EQ(plan.batches(), 3u);
  const auto last = plan.At(2);
  EXPECT_EQ(last.rows, 4u);
  EXPECT_EQ(last.valid, 2u);
  EXPECT_EQ(plan.PositionOf(last, 2), 0u);
}

TEST(BatchPlan, DropsWhatDoesNotFillABatchOfEveryRank) {
  const BatchPlan plan({10, 0, 2, 1, 2, LastBatch::kDrop});
  EXPECT_EQ(plan.batches(), 2u);
  EXPECT_EQ(BatchPlan({3, 0, 2, 0, 2, LastBatch::kDrop}).batches(), 0u);
}

TEST(BatchPlan, ResumesWithAnotherWorldSizeWithoutLossOrRepeat) {
  for (uint64_t stopped_after = 0; stopped_after <= 5; ++stopped_after) {
    const BatchPlan::Cut before{53, 0, 5, 0, 2, LastBatch::kShort};
    auto all = AllPositions(before, stopped_after);
    BatchPlan::Cut after{53, 0, 3, 0, 4, LastBatch::kShort};
    after.start = stopped_after == 0 ? 0 : BatchPlan(before).ConsumedAfter(stopped_after - 1);
    const auto rest = AllPositions(after);
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_EQ(all.size(), 53u);
    EXPECT_EQ(std::set<uint64_t>(all.begin(), all.end()).size(), 53u);
  }
}

}  // namespace
}  // namespace fullbore::loader
