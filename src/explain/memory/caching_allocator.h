// PyTorch's caching allocator of CUDA memory, as far as it decides how much the driver is asked for: sizes rounded, the
// best free block of a stream split, neighbours merged, segments of 2 MiB, 20 MiB or what is needed, and expandable
// ones, of pages that are mapped where they are missing. After what c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.9
// and the notes on memory management in its documentation say; held to its own record, byte by byte, by
// tests/trace/test_snapshots.py. Not done: garbage_collection_threshold, and pools of the user's or of graphs.
//
//   CachingAllocator allocator(settings, capacity);
//   const auto block = allocator.Allocate(1 << 20, 0);  // none: out of memory
//   allocator.Free(*block);
//   allocator.reserved();
//
// Addresses are made up, increasing. One owner, one thread; an allocation takes logarithmic time, but for what
// is searched among the pieces of expandable segments.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "explain/memory/snapshot.h"

namespace fullbore::memory {

class CachingAllocator {
 public:
  using BlockIndex = uint32_t;
  static constexpr int64_t kUnlimited = int64_t{1} << 60;  // so that no sum overflows

  // `capacity`: what all segments together may take of the device. `device_bytes`: its memory, which decides how much
  // address space an expandable segment has.
  explicit CachingAllocator(const AllocatorSettings& settings, int64_t capacity = kUnlimited,
                            int64_t device_bytes = int64_t{1} << 40);

  // None where it does not fit even after all that is cached was given back.
  std::optional<BlockIndex> Allocate(int64_t bytes, uint64_t stream);
  void Free(BlockIndex block);
  void ReleaseCached();  // torch.cuda.empty_cache()
  // Of the segments, counted as they were made or adopted. Does nothing where a part of it is in use. Looks at each
  // free piece.
  void GiveBackSegment(size_t number);

  // A segment that exists already, with what is in use in it, in the order of addresses; the rest of it is free. The
  // blocks' indices, in the same order.
  struct Used {
    int64_t offset = 0, bytes = 0;
  };
  std::vector<BlockIndex> Adopt(const Segment& segment, const std::vector<Used>& used);

  int64_t allocated() const { return allocated_; }  // in blocks
  int64_t reserved() const { return reserved_; }    // of the driver
  int64_t peak_allocated() const { return peak_allocated_; }
  int64_t peak_reserved() const { return peak_reserved_; }
  int64_t retries() const {
    return retries_;
  }  // when the driver had no more, and what was cached was given back
  int64_t driver_calls() const { return driver_calls_; }  // for memory, not for giving it back

  // What is reserved and in no block: looks at each free piece.
  struct Cached {
    int64_t bytes = 0, pieces = 0, largest = 0;
  };
  Cached cached() const;

  // What a block of so many bytes takes, without what is left of one that is not split.
  int64_t Rounded(int64_t bytes) const;

 private:
  static constexpr BlockIndex kNone = std::numeric_limits<BlockIndex>::max();

  struct Piece {  // a block of the allocator's: in use, free, or address space without memory
    uint64_t address = 0;
    int64_t bytes = 0;
    uint64_t stream = 0;
    BlockIndex before = kNone, after = kNone;  // its neighbours in the segment
    uint32_t segment = 0;                      // of expandable ones
    bool small = false, expandable = false;
    bool in_use = false, mapped = true;
  };

  // Free pieces of a pool, the smallest first; without memory, in the order of their addresses.
  struct Key {
    uint64_t stream;
    int64_t bytes;
    uint64_t address;
    BlockIndex piece;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
  };
  struct Pool {
    std::set<Key> free, unmapped;
  };

  struct ExpandableSegment {
    uint64_t address = 0;
    int64_t page_bytes = 0;
  };

  Pool& PoolOf(bool small) { return small ? small_ : large_; }
  Pool& PoolOf(const Piece& piece) { return PoolOf(piece.small); }
  Key KeyOf(BlockIndex piece) const;
  Key UnmappedKeyOf(BlockIndex piece) const;

  std::optional<BlockIndex> TakeFree(int64_t bytes, uint64_t stream, bool small);
  std::optional<BlockIndex> TakeNew(int64_t bytes, uint64_t stream, bool small);
  std::optional<BlockIndex> TakeSegment(int64_t bytes, uint64_t stream, bool small);
  std::optional<BlockIndex> TakeExpandable(int64_t bytes, uint64_t stream, bool small);
  BlockIndex ExpandablePlace(int64_t bytes, uint64_t stream, bool small);
  BlockIndex NewExpandableSegment(uint64_t stream, bool small);
  bool Map(BlockIndex piece, int64_t bytes);
  void Unmap(BlockIndex piece);
  bool TakeFromDriver(int64_t bytes);
  void GiveBackLarger(int64_t bytes, uint64_t stream);
  void GiveBack(BlockIndex piece);
  void GiveBackAll(bool small);

  bool ShouldSplit(const Piece& piece, int64_t bytes) const;
  BlockIndex Use(BlockIndex piece, int64_t bytes);
  bool IsFree(BlockIndex piece) const;
  void Merge(BlockIndex into, BlockIndex neighbour);
  BlockIndex NewPiece(const Piece& piece);
  BlockIndex InsertAfter(BlockIndex before, int64_t bytes);

  const AllocatorSettings settings_;
  const int64_t capacity_, device_bytes_;
  std::vector<Piece> pieces_;
  std::vector<BlockIndex> spare_;  // of pieces_
  std::vector<ExpandableSegment> expandable_;
  std::vector<uint64_t> made_;  // addresses of segments that are not expandable
  Pool small_, large_;
  uint64_t next_address_ = uint64_t{1} << 40;
  int64_t allocated_ = 0, reserved_ = 0, peak_allocated_ = 0, peak_reserved_ = 0;
  int64_t retries_ = 0, driver_calls_ = 0;
};

}  // namespace fullbore::memory
