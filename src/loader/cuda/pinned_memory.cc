#include "loader/cuda/pinned_memory.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/text.h"

namespace fullbore::loader::cuda {
namespace {

constexpr Stream kDefaultStream = nullptr;

class Pinned : public BatchMemory {
 public:
  explicit Pinned(std::shared_ptr<PrimaryContext> context) : context_(std::move(context)) {}

  Result<MemoryBlock> Allocate(size_t bytes) override {
    const PrimaryContext::Current current(*context_);
    const Driver& driver = context_->driver();
    void* data = nullptr;
    if (const Status status = driver.host_alloc(&data, bytes, kPortable); status != 0) {
      return driver.Failed(fmt::format("cannot pin {} for a batch", FormatBytes(static_cast<double>(bytes))),
                           status);
    }
    Event event = nullptr;
    if (const Status status = driver.event_create(&event, kNoTiming); status != 0) {
      driver.host_free(data);
      return driver.Failed("cannot create a CUDA event", status);
    }
    std::memset(data, 0, bytes);
    const std::lock_guard lock(mutex_);
    released_[data] = event;
    return MemoryBlock{data, bytes};
  }

  void Free(MemoryBlock block) override {
    const PrimaryContext::Current current(*context_);
    context_->driver().event_destroy(TakeEvent(block.data));
    context_->driver().host_free(block.data);
  }

  void Released(const MemoryBlock& block) override {
    const PrimaryContext::Current current(*context_);
    context_->driver().event_record(EventOf(block.data), kDefaultStream);
  }

  void AwaitReaders(const MemoryBlock& block) override {
    const PrimaryContext::Current current(*context_);
    context_->driver().event_synchronize(EventOf(block.data));
  }

 private:
  Event EventOf(void* data) {
    const std::lock_guard lock(mutex_);
    return released_.at(data);
  }
  Event TakeEvent(void* data) {
    const std::lock_guard lock(mutex_);
    return released_.extract(data).mapped();
  }

  const std::shared_ptr<PrimaryContext> context_;
  std::mutex mutex_;
  std::unordered_map<void*, Event> released_;  // protected by mutex_
};

}  // namespace

std::shared_ptr<BatchMemory> PinnedMemory(std::shared_ptr<PrimaryContext> context) {
  return std::make_shared<Pinned>(std::move(context));
}

}  // namespace fullbore::loader::cuda
