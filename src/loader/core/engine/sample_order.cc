#include "loader/core/engine/sample_order.h"

#include <algorithm>
#include <numeric>

#include "loader/core/randomness.h"

namespace fullbore::loader {

SampleOrder::SampleOrder(const std::vector<uint64_t>& blocks, const OrderOptions& options, uint64_t epoch)
    : size_(std::accumulate(blocks.begin(), blocks.end(), uint64_t{0})), shuffle_(options.shuffle) {
  const uint64_t key = Mix(Mix(options.seed) + epoch);
  if (!shuffle_) return;
  if (options.shuffle_blocks <= 0 || blocks.size() < 2) {
    all_ = Permutation(size_, key);
    return;
  }
  std::vector<uint64_t> first_ids(blocks.size());
  std::exclusive_scan(blocks.begin(), blocks.end(), first_ids.begin(), uint64_t{0});
  const Permutation block_order(blocks.size(), Mix(key));
  const auto group_blocks = static_cast<size_t>(options.shuffle_blocks);
  uint64_t position = 0;
  for (size_t first = 0; first < blocks.size(); first += group_blocks) {
    uint64_t samples = 0;
    for (size_t i = first; i < std::min(first + group_blocks, blocks.size()); ++i) {
      const uint64_t block = block_order.At(i);
      order_.push_back({first_ids[block], samples});
      samples += blocks[block];
    }
    groups_.push_back({position, first, Permutation(samples, Mix(key + first + 1))});
    position += samples;
  }
}

uint64_t SampleOrder::At(uint64_t position) const {
  if (!shuffle_) return position;
  if (groups_.empty()) return all_.At(position);
  const auto group = std::prev(std::upper_bound(
      groups_.begin(), groups_.end(), position,
      [](uint64_t wanted, const Group& candidate) { return wanted < candidate.first_position; }));
  const uint64_t inside = group->within.At(position - group->first_position);
  const auto first = order_.begin() + static_cast<std::ptrdiff_t>(group->first_block);
  const auto last = std::next(group) == groups_.end()
                        ? order_.end()
                        : order_.begin() + static_cast<std::ptrdiff_t>(std::next(group)->first_block);
  const auto block =
      std::prev(std::upper_bound(first, last, inside, [](uint64_t wanted, const Block& candidate) {
        return wanted < candidate.offset;
      }));
  return block->first_id + (inside - block->offset);
}

}  // namespace fullbore::loader
