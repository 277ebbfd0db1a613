// A memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot): what its caching allocator held when it was taken,
// and what was asked of it before, as far back as it was recorded.
//
// The format is PyTorch's own, in torch/csrc/cuda/memory_snapshot.cpp; 2.9 was seen, and what older ones write otherwise
// is read as far as it is known. What a version does not write is absent here. Addresses are the device's, sizes bytes,
// times microseconds of the wall clock.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace fullbore::memory {

// Index of a stack of MemorySnapshot; the empty one is 0.
using StackIndex = uint32_t;

struct Frame {
  std::string file, function;
  int64_t line = 0;
};

// A memory pool of the user's or of a captured graph; {0, 0} is what all else shares.
struct PoolId {
  int64_t first = 0, second = 0;
  auto operator<=>(const PoolId&) const = default;
};

struct Block {
  enum class State : uint8_t {
    kInUse,
    kAwaitingStream,
    kFree
  };  // the second: freed, but a stream may still use it

  uint64_t address = 0;
  int64_t bytes = 0;      // of the device
  int64_t requested = 0;  // what was asked for; 0 of a free one
  State state = State::kFree;
  StackIndex stack = 0;
};

// What the allocator got from the driver at one time, or, where it is expandable, in pieces that lie side by side.
struct Segment {
  uint64_t address = 0;
  int64_t bytes = 0;
  uint64_t stream = 0;
  bool small = false;  // for blocks of at most 1 MiB
  bool expandable = false;
  PoolId pool;
  std::vector<Block> blocks;  // without gaps, in the order of their addresses
};

struct Event {
  enum class Action : uint8_t {
    kAllocate,
    kFreeRequested,  // by the program
    kFree,           // the memory can be used again: now, or when the streams are done with it
    kSegmentAllocate,
    kSegmentFree,
    kSegmentMap,  // a piece of an expandable segment
    kSegmentUnmap,
    kOutOfMemory,
    kOther,  // a snapshot, or what newer versions add
  };

  Action action = Action::kOther;
  uint64_t address = 0;  // of kOutOfMemory: how many bytes the device had left
  int64_t bytes = 0;     // asked for
  uint64_t stream = 0;
  int64_t time_us = 0;  // 0 where it was not recorded
  StackIndex stack = 0;
};

// PYTORCH_CUDA_ALLOC_CONF, as far as it decides where a block goes.
struct AllocatorSettings {
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  bool expandable_segments = false;
  int64_t max_split_bytes = kNoLimit;  // larger blocks are not split
  double garbage_collection_threshold = 0;
  // Sizes between two powers of two are rounded up to so many steps; 0: to 512 bytes. By the power of two in MiB: of up
  // to 1 MiB first, of 32 GiB and more last.
  std::array<int64_t, 16> divisions_of_power{};
};

struct Device {
  int64_t index = 0;
  std::vector<Segment> segments;
  std::vector<Event> events;  // the oldest first
};

struct MemorySnapshot {
  std::vector<Device> devices;  // those that hold memory or did
  AllocatorSettings settings;
  std::vector<Frame> frames;
  std::vector<std::vector<uint32_t>> stacks;  // of frames, the innermost first
  // What could not be read and was left out, in words; empty if nothing.
  std::vector<std::string> messages;
};

// Reads a file that _dump_snapshot wrote, or pickle.dump of _snapshot(); compressed ones, too. Nothing in it is run.
Result<MemorySnapshot> ReadSnapshot(const std::string& path);

// The same of bytes in memory.
Result<MemorySnapshot> ParseSnapshot(std::string_view bytes);

// Whether the file begins as a pickle: not a trace, not a run.
bool IsSnapshot(const std::string& path);

}  // namespace fullbore::memory
