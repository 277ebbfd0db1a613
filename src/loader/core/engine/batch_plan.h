// Cuts an epoch's positions into batches for every rank, so that all ranks together see each position once
// and every rank gets equally many batches.
//
//   step k of all ranks covers world_size * batch_size positions after `start`;
//   rank r takes the r-th run of batch_size.
//
// So the state of an iteration is one number, the positions consumed by all ranks. It means the same for any
// world size and batch size: to resume is to cut the remaining positions again.
#pragma once

#include <cstdint>

#include "fullbore/loader.h"

namespace fullbore::loader {

// What to do with a short last batch.
enum class LastBatch { kShort, kDrop, kPad };
LastBatch LastBatchOf(const LoaderOptions& options);

class BatchPlan {
 public:
  struct Cut {
    uint64_t samples = 0;  // of the epoch
    uint64_t start = 0;    // positions consumed before
    uint64_t batch_size = 1;
    uint64_t rank = 0, world_size = 1;
    LastBatch last = LastBatch::kShort;
  };
  // Row i < rows of a batch is position `first + i`; rows from
  // `valid` on repeat positions, see PositionOf.
  struct Batch {
    uint64_t first = 0;
    uint64_t rows = 0;
    uint64_t valid = 0;
  };

  BatchPlan() = default;
  explicit BatchPlan(const Cut& cut);

  uint64_t batches() const { return batches_; }
  Batch At(uint64_t index) const;
  // Rows past the last position wrap around to the first ones, as torch's DistributedSampler does.
  uint64_t PositionOf(const Batch& batch, uint64_t row) const { return (batch.first + row) % cut_.samples; }
  // Positions that all ranks have consumed after batch `index`.
  uint64_t ConsumedAfter(uint64_t index) const;
  uint64_t first_index() const { return cut_.start / step_; }  // the index of batch 0 within its epoch

 private:
  Cut cut_;
  uint64_t step_ = 1;
  uint64_t batches_ = 0;
};

}  // namespace fullbore::loader
