// What became of a device's memory, from a snapshot: when it was fullest and with what, what the allocator held beside
// it, what never goes, where the driver refused, and how other settings or another batch would have come out.
//
// A setting is judged by replaying the allocator, and only where the replay of the run as it was agrees with the
// record; else it says by how much it does not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/memory/history.h"
#include "explain/memory/replay.h"
#include "explain/memory/snapshot.h"

namespace fullbore::memory {

struct LineUse {
  std::string place;  // "train.py:42 in forward"; empty: without a stack
  int64_t bytes = 0, blocks = 0;
};

struct Moment {
  std::optional<int64_t> time_us;  // since the first event; absent where times are not recorded
  int64_t allocated = 0;           // in blocks, as torch.cuda.memory_allocated() counts
  int64_t reserved = 0;
};

struct Peak {
  Moment moment;
  CachingAllocator::Cached cached;  // at that moment
  std::vector<LineUse> lines;       // all that stood, the largest first
};

// Memory of one line that was asked for again and again and never given back.
struct Growth {
  std::string place;
  int64_t bytes = 0, blocks = 0;
};

struct RefusedRequest {
  Moment moment;
  int64_t asked = 0, device_free = 0;
  CachingAllocator::Cached cached;
  std::string place;
};

struct WhatIf {
  std::string name;  // "expandable_segments", "batch=2x"
  Replayed replayed;
  // What was reserved at most when the first refused request came, if that fits; what came after it is not known.
  std::optional<int64_t> reserved_at_refusal;
};

struct DeviceAccount {
  int64_t device = 0;
  size_t events = 0;
  std::optional<int64_t> span_us;
  bool complete = false;  // seen from the first allocation on
  // garbage_collection_threshold is set, and more than pages went back: which segments went is known, and not which
  // would have gone under other settings.
  bool collects_garbage = false;
  int64_t earlier_bytes = 0;  // that stood before the first event
  int64_t peak_reserved = 0;  // as recorded
  // What this process could have had of the device: known where the device refused more, and not a limit that is set.
  std::optional<int64_t> capacity;
  int64_t retries = 0;  // when the driver had no more, and all that was cached went back to it
  Moment end;
  Peak peak;  // of what was allocated; without events that of the end
  std::optional<Replayed> as_recorded;
  std::vector<WhatIf> what_if;
  std::vector<Growth> growing;  // the largest first
  std::vector<RefusedRequest> refused;
  std::vector<Moment> curve;  // at most a few thousand, each the fullest of its stretch
  int64_t scaled_bytes = 0;   // of the peak, what a larger batch would make larger
};

struct AccountOptions {
  std::vector<double> batches;  // how many times as large
};

std::vector<DeviceAccount> AccountsOf(const MemorySnapshot& snapshot, const AccountOptions& options = {});

// Whether the record is complete, for what was held in pieces before it began would be missing elsewhere, and
// whether a replay of the run as it was says enough for its answers on other settings to be believed; all that the
// allocator does has to be replayed there, too.
bool CanJudge(const DeviceAccount& account);

}  // namespace fullbore::memory
