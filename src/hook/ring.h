// The writing end of a process's ring (record/channel.h), for any number of threads at once. Knows no Python, throws
// nothing and allocates nothing: it runs inside the training.
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "record/channel.h"

namespace fullbore::hook {

inline int64_t ClockNs(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class Ring {
 public:
  // `map`: the whole file, header included, mapped for as long as anybody writes.
  Ring(void* map, uint32_t header_bytes, uint32_t capacity)
      : records_(static_cast<char*>(map) + header_bytes), capacity_(capacity) {}

  // Takes the next number; the number in `record` is ignored.
  void Write(const record::ChannelRecord& record) {
    const uint64_t sequence = written_.fetch_add(1, std::memory_order_relaxed) + 1;
    char* slot = records_ + (sequence - 1) % capacity_ * sizeof record;
    std::memcpy(slot, &record, offsetof(record::ChannelRecord, sequence));
    // Last: a reader that sees the number sees the record.
    __atomic_store_n(reinterpret_cast<uint64_t*>(slot + offsetof(record::ChannelRecord, sequence)), sequence,
                     __ATOMIC_RELEASE);
  }

  uint64_t written() const { return written_.load(std::memory_order_relaxed); }

 private:
  char* const records_;
  const uint64_t capacity_;
  std::atomic<uint64_t> written_{0};
};

}  // namespace fullbore::hook
