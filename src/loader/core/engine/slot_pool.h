// The memory of batches: slots that are filled, handed out, and filled again once the last reader has
// released them. A slot with a reader is never filled, and the loader never waits for a reader but takes
// another slot: a consumer that keeps every batch costs memory, but never causes a deadlock.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "fullbore/loader/batch_memory.h"

namespace fullbore::loader {

// A value without a fixed size, in memory of its own; the bytes around it mean nothing.
struct Item {
  std::vector<uint8_t> storage;
  size_t begin = 0, length = 0;

  std::string_view view() const { return {reinterpret_cast<const char*>(storage.data()) + begin, length}; }
};

struct Slot {
  MemoryBlock block;
  std::vector<std::vector<Item>> items;  // by field and row; empty for the fields that lie in `block`
};

// Thread-safe. Slots keep the pool alive.
class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  SlotPool(std::shared_ptr<BatchMemory> memory, size_t slot_bytes, std::vector<bool> field_has_items,
           size_t rows);
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  // A slot without readers. It returns to the pool with the last copy of the pointer.
  Result<std::shared_ptr<Slot>> Take();
  // Free slots beyond this number are returned to the system.
  void KeepAtMost(size_t free_slots);
  uint64_t bytes() const;  // of all slots, in use or free

 private:
  void Return(std::unique_ptr<Slot> slot);
  Result<std::unique_ptr<Slot>> Make();

  const std::shared_ptr<BatchMemory> memory_;
  const size_t slot_bytes_;  // whole pages
  const std::vector<bool> field_has_items_;
  const size_t rows_;

  mutable std::mutex mutex_;  // protects what follows
  std::vector<std::unique_ptr<Slot>> free_;
  size_t keep_ = 2;
  size_t slots_ = 0;
};

}  // namespace fullbore::loader
