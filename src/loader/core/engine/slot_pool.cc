#include "loader/core/engine/slot_pool.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace fullbore::loader {

namespace {

size_t WholePages(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::max<size_t>(1, (bytes + page - 1) / page) * page;
}

}  // namespace

SlotPool::SlotPool(std::shared_ptr<BatchMemory> memory, size_t slot_bytes, std::vector<bool> field_has_items,
                   size_t rows)
    : memory_(std::move(memory)),
      slot_bytes_(WholePages(slot_bytes)),
      field_has_items_(std::move(field_has_items)),
      rows_(rows) {}

SlotPool::~SlotPool() {
  for (auto& slot : free_) {
    memory_->AwaitReaders(slot->block);
    memory_->Free(slot->block);
  }
}

Result<std::unique_ptr<Slot>> SlotPool::Make() {
  auto block = memory_->Allocate(slot_bytes_);
  if (!block.ok()) return block.error();
  auto slot = std::make_unique<Slot>();
  slot->block = *block;
  slot->items.resize(field_has_items_.size());
  for (size_t field = 0; field < field_has_items_.size(); ++field) {
    if (field_has_items_[field]) slot->items[field].resize(rows_);
  }
  return slot;
}

Result<std::shared_ptr<Slot>> SlotPool::Take() {
  std::unique_ptr<Slot> slot;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      slot = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (slot) {
    memory_->AwaitReaders(slot->block);
  } else {
    auto made = Make();
    if (!made.ok()) return made.error();
    slot = std::move(*made);
    const std::lock_guard lock(mutex_);
    ++slots_;
  }
  return std::shared_ptr<Slot>(
      slot.release(), [pool = shared_from_this()](Slot* done) { pool->Return(std::unique_ptr<Slot>(done)); });
}

void SlotPool::Return(std::unique_ptr<Slot> slot) {
  memory_->Released(slot->block);
  {
    const std::lock_guard lock(mutex_);
    if (free_.size() < keep_) {
      free_.push_back(std::move(slot));
      return;
    }
    --slots_;
  }
  memory_->AwaitReaders(slot->block);
  memory_->Free(slot->block);
}

void SlotPool::KeepAtMost(size_t free_slots) {
  std::vector<std::unique_ptr<Slot>> surplus;
  {
    const std::lock_guard lock(mutex_);
    keep_ = free_slots;
    while (free_.size() > keep_) {
      surplus.push_back(std::move(free_.back()));
      free_.pop_back();
      --slots_;
    }
  }
  for (auto& slot : surplus) {
    memory_->AwaitReaders(slot->block);
    memory_->Free(slot->block);
  }
}

uint64_t SlotPool::bytes() const {
  const std::lock_guard lock(mutex_);
  return slots_ * slot_bytes_;
}

}  // namespace fullbore::loader
