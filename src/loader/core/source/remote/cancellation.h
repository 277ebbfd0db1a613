// Ends what is under way, from another thread, and leaves what begins later alone.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace fullbore::loader::remote {

class Cancellation {
 public:
  // One for each call of the store, made when the call begins.
  class Token {
   public:
    explicit Token(Cancellation& owner) : owner_(&owner), generation_(owner.generation()) {}
    bool cancelled() const { return owner_->generation() != generation_; }
    // True when the time passed, false as soon as it was cancelled.
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
