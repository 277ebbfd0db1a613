// The events of a snapshot as what the program asked for: which memory lived from when to when, and how much the
// allocator had of the driver meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "explain/memory/snapshot.h"

namespace fullbore::memory {

// One piece of memory that the program had.
struct Life {
  int64_t bytes = 0;  // asked for
  uint64_t stream = 0;
  StackIndex stack = 0;
  uint64_t address = 0;               // where PyTorch put it
  std::optional<size_t> born, freed;  // events; none: before the first, after the last
  StackIndex freed_stack = 0;         // who gave it back
};

// What the program did, in order.
struct Act {
  enum class Kind : uint8_t {
    kAllocate,
    kFree,
    kRelease,   // what is cached went back to the driver: torch.cuda.empty_cache()
    kRetry,     // the same, because the driver had no more
    kFail,      // memory that it did not get
    kGiveBack,  // a segment that went: of a kRelease or kRetry, which need not take all that is cached
  };

  Kind kind = Kind::kAllocate;
  size_t event = 0;
  size_t life = 0;    // of kAllocate and kFree; of kGiveBack: which segment, counted as they were made
  int64_t bytes = 0;  // of kFail
  uint64_t stream = 0;
};

// Where the driver refused.
struct Refusal {
  size_t event = 0;
  int64_t asked = 0;        // for one block
  int64_t device_free = 0;  // what the driver said
  int64_t reserved = 0;     // by this process at that moment
};

struct History {
  std::vector<Life> lives;
  std::vector<Act> acts;
  std::vector<size_t> earlier;    // lives that began before the first event, in the order of their addresses
  std::vector<Segment> segments;  // that stood before the first event, without their blocks
  std::vector<int64_t> reserved;  // after each event, as recorded
  int64_t reserved_before = 0;    // the first event
  std::vector<Refusal> refusals;

  bool complete() const { return earlier.empty() && segments.empty(); }  // seen from the very beginning
  int64_t peak_reserved() const;
};

History HistoryOf(const Device& device);

}  // namespace fullbore::memory
