// What the caching allocator would have done with the same requests under other settings, with other sizes or on
// another device; and under its own, which shows how far the answer can be believed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "explain/memory/caching_allocator.h"
#include "explain/memory/history.h"

namespace fullbore::memory {

struct ReplayOptions {
  AllocatorSettings settings;
  int64_t capacity = CachingAllocator::kUnlimited;
  // Whether what the record shows the allocator to have given back is given back then: only under its own settings.
  bool as_recorded = false;
  std::vector<int64_t> bytes;  // of each life; empty: as recorded
};

struct Replayed {
  int64_t peak_allocated = 0, peak_reserved = 0;
  int64_t retries = 0, driver_calls = 0;
  std::optional<size_t>
      failed;  // the event of the first request that did not fit; nothing after it is counted
  // With as_recorded: the largest difference from what was reserved after an event, in bytes; 0: to the byte.
  int64_t off = 0;
};

// Called after each act; what is done with the allocator is up to the caller as long as it only looks.
using ReplayObserver = std::function<void(const Act& act, const CachingAllocator& allocator)>;

Replayed Replay(const History& history, const ReplayOptions& options, const ReplayObserver& observer = {});

}  // namespace fullbore::memory
