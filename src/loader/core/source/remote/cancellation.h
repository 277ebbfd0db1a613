// Cancels calls in progress from another thread, and leaves later ones alone.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace fullbore::loader::remote {

class Cancellation {
 public:
  // One per call of the store, created when the call begins.
  class Token {
   public:
    explicit Token(Cancellation& owner) : owner_(&owner), generation_(owner.generation()) {}
    bool cancelled() const { return owner_->generation() != generation_; }
    // True if the time passed, false as soon as it was cancelled.
    bool Sleep(std::chrono::nanoseconds time) const {
      std::unique_lock lock(owner_->mutex_);
      return !owner_->changed_.wait_for(lock, time, [&] { return owner_->generation_ != generation_; });
    }

   private:
    Cancellation* owner_;
    uint64_t generation_;
  };

  void Cancel() {
    {
      std::lock_guard lock(mutex_);
      ++generation_;
    }
    changed_.notify_all();
  }

 private:
  uint64_t generation() const {
    std::lock_guard lock(mutex_);
    return generation_;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t generation_ = 0;
};

}  // namespace fullbore::loader::remote
