#include "base/side_thread.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/time_limit.h"

namespace fullbore {

namespace {

constexpr int64_t kEndsInNs = kNsPerSecond;  // after its limit, or after it was told to end

}  // namespace

struct SideThread::Work {
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::condition_variable ended_changed;
  bool ended = false, in_time = false;  // guarded by mutex
  int64_t begin_ns = MonotonicNs();
  bool told = false;  // to the owner: that it was given up

  void End(bool was_in_time) {
    const std::lock_guard lock(mutex);
    ended = true;
    in_time = was_in_time;
    ended_changed.notify_all();
  }
  bool WaitForEnd(int64_t ns) {
    std::unique_lock lock(mutex);
    return ended_changed.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return ended; });
  }
};

SideThread::~SideThread() {
  if (!work_) return;
  work_->stop = true;
  (void)work_->WaitForEnd(kEndsInNs);
}

bool SideThread::Begin(std::function<void()> work) {
  if (work_) return false;
  auto begun = std::make_shared<Work>();
  try {
    std::thread([begun, limit_ns = limit_ns_, work = std::move(work)]() mutable {
      bool in_time = false;
      try {
        const TimeLimit limit(limit_ns, &begun->stop);
        work();
        in_time = true;
      } catch (const std::exception&) {  // out of time, or of memory
      }
      work = nullptr;
      begun->End(in_time);
    }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  work_ = std::move(begun);
  return true;
}

SideThread::State SideThread::Poll(int64_t wait_ns) {
  if (!work_) return State::kFree;
  if (work_->WaitForEnd(wait_ns)) {
    const bool told = work_->told, in_time = work_->in_time;
    work_.reset();
    return told ? State::kFree : in_time ? State::kDone : State::kGivenUp;
  }
  if (work_->told) return State::kStuck;
  if (MonotonicNs() - work_->begin_ns < limit_ns_ + kEndsInNs) return State::kBusy;
  work_->told = true;
  return State::kGivenUp;
}

}  // namespace fullbore
