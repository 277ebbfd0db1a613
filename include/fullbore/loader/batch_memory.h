// Where the memory of batches comes from: this process's own, memory shared with another process, or pinned
// memory. Blocks are made rarely, when the pool grows, and used again for every batch after that.
#pragma once

#include <cstddef>
#include <memory>

#include "fullbore/result.h"

namespace fullbore::loader {

struct MemoryBlock {
  void* data = nullptr;  // aligned to a page, zeroed
  size_t bytes = 0;
  int fd = -1;  // what another process maps to see the same bytes; -1 where that cannot be
};

// Safe to call from many threads. Outlives the last block: the pool shares it.
class BatchMemory {
 public:
  virtual ~BatchMemory() = default;
  virtual Result<MemoryBlock> Allocate(size_t bytes) = 0;
  virtual void Free(MemoryBlock block) = 0;
  // The last reader in this process has let go; a copy to a device that it asked for may still be reading.
  virtual void Released(const MemoryBlock& block) { (void)block; }
  // Returns when that is done too. Called before a released block is filled again or freed.
  virtual void AwaitReaders(const MemoryBlock& block) { (void)block; }
};

std::shared_ptr<BatchMemory> PrivateMemory();  // anonymous pages, huge ones where the kernel gives them
std::shared_ptr<BatchMemory> SharedMemory();   // a memfd a block: no name that could be left behind

}  // namespace fullbore::loader
