// How many threads the loader runs, decided from what a window of time showed. The aim is a consumer that
// does not wait, with as few threads as possible: an unneeded thread takes cores from the training loop.
//
//   the consumer waits, all decoding threads are busy  -> one more, up to the number of cores
//   the consumer waits, decoding threads are not busy  -> reading is the bottleneck: more threads that read
//   the consumer waits and threads also stood idle     -> work comes in bursts: room for one more finished batch
//   nobody waits and a whole thread's time is idle     -> one fewer
//
// Each change is a trial: one that did not help is undone and not tried again for a period that doubles.
#pragma once

#include <cstdint>

namespace fullbore::loader {

struct ThreadSetting {
  int decode_threads = 1;  // how many may use a core at once
  int read_threads = 0;    // how many more may wait in a read meanwhile
  int ready_batches = 2;   // finished batches kept ahead of the consumer
  bool operator==(const ThreadSetting&) const = default;
};

struct ThreadLimits {
  int max_decode_threads = 1;
  bool decode_threads_are_fixed = false;  // the user chose them
  int max_read_threads = 32;
  int min_ready_batches = 2, max_ready_batches = 8;
};

// What happened in a window.
struct Window {
  uint64_t wall_ns = 0;
  uint64_t samples = 0;           // finished; not batches, of which a window may hold only one
  uint64_t consumer_wait_ns = 0;  // of wall_ns
  uint64_t core_ns = 0;           // spent decoding and transforming, summed over threads
  uint64_t idle_ns = 0;           // spent waiting for room in the finished batches, summed over threads
};

class Tuner {
 public:
  explicit Tuner(const ThreadLimits& limits);
  const ThreadSetting& setting() const { return setting_; }
  // The setting for the next window.
  const ThreadSetting& After(const Window& window);

 private:
  // A change on trial, and for how many windows not to try it again after it failed.
  struct Direction {
    int hold = 0, next_hold = 4;
    bool MayTry() const { return hold == 0; }
    void Failed();
    void Passed() { next_hold = 4; }
  };

  bool JudgeTrial(double rate, bool waits);
  void Grow(const Window& window);
  void Shrink(const Window& window);

  const ThreadLimits limits_;
  ThreadSetting setting_, before_trial_;
  double rate_before_trial_ = 0;
  Direction more_decoding_, more_reading_, fewer_;
  Direction* trial_ = nullptr;
};

}  // namespace fullbore::loader
