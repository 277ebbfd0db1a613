// Which sample is at which position of an epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loader/core/engine/permutation.h"

namespace fullbore::loader {

struct OrderOptions {
  bool shuffle = true;
  // 0: one permutation of everything. n: permute the blocks (shards), then samples within groups of n
  // consecutive blocks of that order, so that only n shards are read at a time.
  int shuffle_blocks = 0;
  uint64_t seed = 0;
};

// The order of one epoch. Memory: nothing per sample, a few words per block, and only with shuffle_blocks.
class SampleOrder {
 public:
  SampleOrder(const std::vector<uint64_t>& blocks, const OrderOptions& options, uint64_t epoch);

  uint64_t size() const { return size_; }
  uint64_t At(uint64_t position) const;  // sample id; position < size()

 private:
  struct Group {
    uint64_t first_position = 0;
    size_t first_block = 0;  // in order_
    Permutation within;
  };
  struct Block {
    uint64_t first_id = 0;
    uint64_t offset = 0;  // of its first sample within its group
  };

  uint64_t size_ = 0;
  bool shuffle_ = true;
  Permutation all_;
  std::vector<Block> order_;   // blocks in the epoch's order
  std::vector<Group> groups_;  // empty: all_ alone decides
};

}  // namespace fullbore::loader
