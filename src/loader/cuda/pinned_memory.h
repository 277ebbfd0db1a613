// Batch memory that the device copies from directly. Pinned once, when the pool grows, not per batch.
#pragma once

#include <memory>

#include "fullbore/loader/batch_memory.h"
#include "loader/cuda/driver.h"

namespace fullbore::loader::cuda {

// A block whose last reader released it may still be read by a copy that was queued before, so it is filled
// again only after the work then queued on the default stream is done. A consumer that copies on a stream
// that does not wait for the default stream (a "non-blocking" one) must hold the batch until its copy is
// done.
std::shared_ptr<BatchMemory> PinnedMemory(std::shared_ptr<PrimaryContext> context);

}  // namespace fullbore::loader::cuda
