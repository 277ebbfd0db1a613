#include "loader/core/engine/tuner.h"

#include <algorithm>

namespace fullbore::loader {
namespace {

// Shares of time that the consumer waits: above the first it is short of data, below the second it is not.
// Between the two nothing changes, so that the setting does not oscillate.
constexpr double kWaits = 0.02, kDoesNotWait = 0.005;
// Decoding threads this busy are the bottleneck; the rest of their time goes to hand-overs and scheduling.
constexpr double kBusy = 0.8;
// Threads idle for this share while the consumer also waited: bursts.
constexpr double kBursts = 0.2;
// A change must gain this much to stay: smaller differences between two windows are noise.
constexpr double kWorthwhile = 1.03;
constexpr int kMaxHold = 64;  // windows

}  // namespace

void Tuner::Direction::Failed() {
  hold = next_hold;
  next_hold = std::min(2 * next_hold, kMaxHold);
}

// Starts with all cores, because the consumer waits for the first batches in any case.
Tuner::Tuner(const ThreadLimits& limits)
    : limits_(limits),
      setting_{limits.max_decode_threads, 0, limits.min_ready_batches},
      before_trial_(setting_) {}

const ThreadSetting& Tuner::After(const Window& window) {
  for (Direction* direction : {&more_decoding_, &more_reading_, &fewer_}) {
    if (direction->hold > 0) --direction->hold;
  }
  if (window.wall_ns == 0) return setting_;
  const auto wall = static_cast<double>(window.wall_ns);
  const double wait = static_cast<double>(window.consumer_wait_ns) / wall;
  const double rate = static_cast<double>(window.samples) / wall;
  if (!JudgeTrial(rate, wait > kWaits)) return setting_;  // undone: see what the old setting gives now
  rate_before_trial_ = rate;
  before_trial_ = setting_;
  if (wait > kWaits) {
    Grow(window);
  } else if (wait < kDoesNotWait) {
    Shrink(window);
  }
  return setting_;
}

bool Tuner::JudgeTrial(double rate, bool waits) {
  Direction* const trial = trial_;
  trial_ = nullptr;
  if (trial == nullptr) return true;
  const bool failed = trial == &fewer_ ? waits : waits && rate < kWorthwhile * rate_before_trial_;
  if (!failed) {
    trial->Passed();
    return true;
  }
  trial->Failed();
  setting_ = before_trial_;
  return false;
}

void Tuner::Grow(const Window& window) {
  const auto wall = static_cast<double>(window.wall_ns);
  const double busy = static_cast<double>(window.core_ns) / (wall * setting_.decode_threads);
  const double idle =
      static_cast<double>(window.idle_ns) / (wall * (setting_.decode_threads + setting_.read_threads));
  if (idle > kBursts && setting_.ready_batches < limits_.max_ready_batches) {
    ++setting_.ready_batches;
  } else if (busy >= kBusy) {
    if (limits_.decode_threads_are_fixed || setting_.decode_threads >= limits_.max_decode_threads) return;
    if (!more_decoding_.MayTry()) return;
    ++setting_.decode_threads;
    trial_ = &more_decoding_;
  } else if (setting_.read_threads < limits_.max_read_threads && more_reading_.MayTry()) {
    // Reading waits for latency, so each doubling shows; one more thread among ten does not.
    setting_.read_threads = std::min(limits_.max_read_threads, std::max(2, 2 * setting_.read_threads));
    trial_ = &more_reading_;
  }
}

void Tuner::Shrink(const Window& window) {
  if (!fewer_.MayTry()) return;
  const double idle_threads = static_cast<double>(window.idle_ns) / static_cast<double>(window.wall_ns);
  if (setting_.read_threads > 0) {
    // If half of all threads stood idle, half of these would do the same work.
    if (idle_threads < 0.5 * (setting_.decode_threads + setting_.read_threads)) return;
    setting_.read_threads /= 2;
  } else {
    if (limits_.decode_threads_are_fixed || setting_.decode_threads <= 1 || idle_threads < 1) return;
    --setting_.decode_threads;
  }
  trial_ = &fewer_;
}

}  // namespace fullbore::loader
