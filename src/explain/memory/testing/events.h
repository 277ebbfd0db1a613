// Devices with events made by hand.
#pragma once

#include <cstdint>
#include <utility>

#include "explain/memory/snapshot.h"

namespace fullbore::memory {

inline constexpr int64_t kTestMiB = int64_t{1} << 20;

// Writes events as PyTorch does, a millisecond apart.
class DeviceMaker {
 public:
  DeviceMaker& Do(Event::Action action, uint64_t address, int64_t bytes, StackIndex stack = 0) {
    device_.events.push_back({action, address, bytes, 0, time_us_ += 1000, stack});
    return *this;
  }
  DeviceMaker& Allocate(uint64_t address, int64_t bytes, StackIndex stack = 0) {
    return Do(Event::Action::kAllocate, address, bytes, stack);
  }
  DeviceMaker& Free(uint64_t address, int64_t bytes) {
    return Do(Event::Action::kFreeRequested, address, bytes).Do(Event::Action::kFree, address, bytes);
  }
  DeviceMaker& Segment(uint64_t address, int64_t bytes) {
    return Do(Event::Action::kSegmentAllocate, address, bytes);
  }

  // What stands at the end: a segment, and the blocks in use in it, {address, bytes}.
  DeviceMaker& Stands(uint64_t address, int64_t bytes,
                      const std::vector<std::pair<uint64_t, int64_t>>& used) {
    memory::Segment segment;
    segment.address = address;
    segment.bytes = bytes;
    segment.small = bytes == 2 * kTestMiB;
    for (const auto& [at, size] : used) segment.blocks.push_back({at, size, size, Block::State::kInUse, 0});
    device_.segments.push_back(std::move(segment));
    return *this;
  }

  Device Take() { return std::move(device_); }

 private:
  Device device_;
  int64_t time_us_ = 0;
};

}  // namespace fullbore::memory
