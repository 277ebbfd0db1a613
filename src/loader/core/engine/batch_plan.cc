#include "loader/core/engine/batch_plan.h"

#include <algorithm>

namespace fullbore::loader {

LastBatch LastBatchOf(const LoaderOptions& options) {
  if (options.drop_last) return LastBatch::kDrop;
  return options.pad_last ? LastBatch::kPad : LastBatch::kShort;
}

BatchPlan::BatchPlan(const Cut& cut) : cut_(cut), step_(cut.world_size * cut.batch_size) {
  cut_.start = std::min(cut.start, cut.samples);
  const uint64_t left = cut_.samples - cut_.start;
  batches_ = cut_.last == LastBatch::kDrop ? left / step_ : (left + step_ - 1) / step_;
}

BatchPlan::Batch BatchPlan::At(uint64_t index) const {
  const uint64_t base = cut_.start + index * step_;
  const uint64_t left = cut_.samples - base;
  Batch batch{base + cut_.rank * cut_.batch_size, cut_.batch_size, cut_.batch_size};
  if (left >= step_) return batch;
  if (cut_.last == LastBatch::kPad) {
    batch.valid = std::min(cut_.batch_size, cut_.samples - std::min(batch.first, cut_.samples));
    return batch;
  }
  // The rest is dealt out evenly. A rank that would get nothing
  // repeats a sample: a rank without a batch makes the others wait.
  const uint64_t each = left / cut_.world_size, more = left % cut_.world_size;
  batch.first = base + cut_.rank * each + std::min(cut_.rank, more);
  batch.valid = each + (cut_.rank < more ? 1 : 0);
  batch.rows = std::max<uint64_t>(batch.valid, 1);
  return batch;
}

uint64_t BatchPlan::ConsumedAfter(uint64_t index) const {
  return std::min(cut_.samples, cut_.start + (index + 1) * step_);
}

}  // namespace fullbore::loader
