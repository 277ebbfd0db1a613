// Where the memory of batches comes from: pages of this process, or pinned ones.
// Blocks are allocated rarely, when the pool grows, and reused for every batch after that.
#pragma once

#include <cstddef>
#include <memory>

#include "fullbore/result.h"

namespace fullbore::loader {

struct MemoryBlock {
  void* data = nullptr;  // page-aligned, zeroed
  size_t bytes = 0;
};

// Thread-safe. Outlives the last block: the pool shares ownership.
class BatchMemory {
 public:
  virtual ~BatchMemory() = default;
  virtual Result<MemoryBlock> Allocate(size_t bytes) = 0;
  virtual void Free(MemoryBlock block) = 0;
  // The last reader in this process has released the block; a copy to a device that it started may still be
  // reading it.
  virtual void Released(const MemoryBlock& block) { (void)block; }
  // Returns when that copy is done, too. Called before a released block is filled again or freed.
  virtual void AwaitReaders(const MemoryBlock& block) { (void)block; }
};

std::shared_ptr<BatchMemory> PrivateMemory();  // anonymous pages, huge ones if the kernel provides them

}  // namespace fullbore::loader
