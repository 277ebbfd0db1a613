#include "explain/memory/caching_allocator.h"

#include <algorithm>
#include <bit>

namespace fullbore::memory {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kLeastBlock = 512;
constexpr int64_t kLargestSmall = kMiB;          // more than that comes from the large pool
constexpr int64_t kSmallSegment = 2 * kMiB;      // that small blocks are cut from
constexpr int64_t kLargeSegment = 20 * kMiB;     // that blocks of up to kLeastOwnSegment are cut from
constexpr int64_t kLeastOwnSegment = 10 * kMiB;  // from here on a segment is made for the block
constexpr int64_t kOwnSegmentRounding = 2 * kMiB;
constexpr int64_t kMostLeftOfOversized = kLargeSegment;  // of a block above max_split_size that is not split

constexpr int64_t RoundUp(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

int64_t SegmentBytes(int64_t bytes) {
  if (bytes <= kLargestSmall) return kSmallSegment;
  if (bytes < kLeastOwnSegment) return kLargeSegment;
  return RoundUp(bytes, kOwnSegmentRounding);
}

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, int64_t capacity, int64_t device_bytes)
    : settings_(settings), capacity_(std::min(capacity, kUnlimited)), device_bytes_(device_bytes) {}

int64_t CachingAllocator::Rounded(int64_t bytes) const {
  if (bytes < kLeastBlock) return kLeastBlock;
  const auto log2 = static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes))) - 1;
  const auto last = static_cast<int>(settings_.divisions_of_power.size()) - 1;
  const int64_t divisions = settings_.divisions_of_power[static_cast<size_t>(std::clamp(log2 - 20, 0, last))];
  if (divisions <= 1 || bytes <= kLeastBlock * divisions) return RoundUp(bytes, kLeastBlock);
  const int64_t power = int64_t{1} << log2;
  if (bytes == power) return bytes;
  const int64_t step = power / static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(divisions)));
  return step == 0 ? power * 2 : RoundUp(bytes, step);
}

CachingAllocator::Key CachingAllocator::KeyOf(BlockIndex piece) const {
  const Piece& its = pieces_[piece];
  return {its.stream, its.bytes, its.address, piece};
}

CachingAllocator::Key CachingAllocator::UnmappedKeyOf(BlockIndex piece) const {
  return {pieces_[piece].stream, 0, pieces_[piece].address, piece};
}

std::optional<CachingAllocator::BlockIndex> CachingAllocator::Allocate(int64_t bytes, uint64_t stream) {
  const int64_t rounded = Rounded(bytes);
  const bool small = rounded <= kLargestSmall;
  auto piece = TakeFree(rounded, stream, small);
  if (!piece) piece = TakeNew(rounded, stream, small);
  if (!piece) {
    GiveBackLarger(rounded, stream);
    piece = TakeNew(rounded, stream, small);
  }
  if (!piece) {
    ReleaseCached();
    ++retries_;
    piece = TakeNew(rounded, stream, small);
  }
  if (!piece) return std::nullopt;
  return Use(*piece, rounded);
}

std::optional<CachingAllocator::BlockIndex> CachingAllocator::TakeFree(int64_t bytes, uint64_t stream,
                                                                       bool small) {
  auto& free = PoolOf(small).free;
  auto found = free.lower_bound({stream, bytes, 0, 0});
  if (found == free.end() || found->stream != stream) return std::nullopt;
  if (pieces_[found->piece].expandable) {
    // A piece counts as large as it can become, so that the smallest one is the one with the least behind it.
    const auto could_be = [&](const Key& key) {
      const Piece& piece = pieces_[key.piece];
      const bool grows = piece.after != kNone && !pieces_[piece.after].mapped;
      return piece.bytes + (grows ? pieces_[piece.after].bytes : 0);
    };
    auto next = std::next(found);
    while (pieces_[found->piece].expandable && next != free.end() && next->stream == stream &&
           could_be(*next) < could_be(*found))
      found = next++;
  }
  const int64_t found_bytes = found->bytes;
  if (bytes < settings_.max_split_bytes && found_bytes >= settings_.max_split_bytes) return std::nullopt;
  if (bytes >= settings_.max_split_bytes && found_bytes >= bytes + kMostLeftOfOversized) return std::nullopt;
  const BlockIndex piece = found->piece;
  free.erase(found);
  return piece;
}

std::optional<CachingAllocator::BlockIndex> CachingAllocator::TakeNew(int64_t bytes, uint64_t stream,
                                                                      bool small) {
  return settings_.expandable_segments ? TakeExpandable(bytes, stream, small)
                                       : TakeSegment(SegmentBytes(bytes), stream, small);
}

bool CachingAllocator::TakeFromDriver(int64_t bytes) {
  if (bytes > capacity_ - reserved_) return false;
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  ++driver_calls_;
  return true;
}

std::optional<CachingAllocator::BlockIndex> CachingAllocator::TakeSegment(int64_t bytes, uint64_t stream,
                                                                          bool small) {
  if (!TakeFromDriver(bytes)) return std::nullopt;
  Piece piece;
  piece.address = next_address_;
  piece.bytes = bytes;
  piece.stream = stream;
  piece.small = small;
  made_.push_back(next_address_);
  next_address_ += static_cast<uint64_t>(RoundUp(bytes, kSmallSegment));
  return NewPiece(piece);
}

std::optional<CachingAllocator::BlockIndex> CachingAllocator::TakeExpandable(int64_t bytes, uint64_t stream,
                                                                             bool small) {
  BlockIndex piece = ExpandablePlace(bytes, stream, small);
  if (piece == kNone) return std::nullopt;
  if (!pieces_[piece].mapped && !Map(piece, std::min(pieces_[piece].bytes, bytes))) return std::nullopt;
  while (pieces_[piece].bytes < bytes) {
    const BlockIndex next = pieces_[piece].after;
    const int64_t missing = bytes - pieces_[piece].bytes;
    if (!Map(next, std::min(missing, pieces_[next].bytes))) return std::nullopt;
    piece = next;  // which the one before it was merged into
  }
  PoolOf(small).free.erase(KeyOf(piece));
  return piece;
}

// The first free address space of the stream with room for so many bytes, with the free memory right before it.
CachingAllocator::BlockIndex CachingAllocator::ExpandablePlace(int64_t bytes, uint64_t stream, bool small) {
  const auto& unmapped = PoolOf(small).unmapped;
  for (auto each = unmapped.lower_bound({stream, 0, 0, 0}); each != unmapped.end() && each->stream == stream;
       ++each) {
    BlockIndex first = each->piece;
    if (IsFree(pieces_[first].before)) first = pieces_[first].before;
    int64_t room = 0;
    for (BlockIndex piece = first; room < bytes && IsFree(piece); piece = pieces_[piece].after)
      room += pieces_[piece].bytes;
    if (room >= bytes) return first;
  }
  const BlockIndex piece = NewExpandableSegment(stream, small);
  return pieces_[piece].bytes >= bytes ? piece : kNone;
}

CachingAllocator::BlockIndex CachingAllocator::NewExpandableSegment(uint64_t stream, bool small) {
  const int64_t page_bytes = small ? kSmallSegment : kLargeSegment;
  Piece piece;
  piece.address = next_address_;
  piece.bytes = RoundUp(device_bytes_ + device_bytes_ / 8, page_bytes);
  piece.stream = stream;
  piece.segment = static_cast<uint32_t>(expandable_.size());
  piece.small = small;
  piece.expandable = true;
  piece.mapped = false;
  expandable_.push_back({next_address_, page_bytes});
  next_address_ += static_cast<uint64_t>(piece.bytes);
  const BlockIndex index = NewPiece(piece);
  PoolOf(small).unmapped.insert(UnmappedKeyOf(index));
  return index;
}

// Gives the first `bytes` of a piece of address space memory, in whole pages; what follows stays without. The piece
// then is a free one, with its free neighbours merged into it. False if the driver has no more.
bool CachingAllocator::Map(BlockIndex piece, int64_t bytes) {
  const int64_t mapped =
      std::min(RoundUp(bytes, expandable_[pieces_[piece].segment].page_bytes), pieces_[piece].bytes);
  if (!TakeFromDriver(mapped)) return false;
  Pool& pool = PoolOf(pieces_[piece]);
  pool.unmapped.erase(UnmappedKeyOf(piece));
  if (mapped < pieces_[piece].bytes) pool.unmapped.insert(UnmappedKeyOf(InsertAfter(piece, mapped)));
  pieces_[piece].mapped = true;
  Merge(piece, pieces_[piece].before);
  Merge(piece, pieces_[piece].after);
  pool.free.insert(KeyOf(piece));
  return true;
}

// Takes the whole pages of a free piece from it; what lies beside them stays.
void CachingAllocator::Unmap(BlockIndex piece) {
  const ExpandableSegment segment = expandable_[pieces_[piece].segment];
  const auto offset = static_cast<int64_t>(pieces_[piece].address - segment.address);
  const int64_t begin = RoundUp(offset, segment.page_bytes);
  const int64_t end = (offset + pieces_[piece].bytes) / segment.page_bytes * segment.page_bytes;
  if (begin >= end) return;
  Pool& pool = PoolOf(pieces_[piece]);
  pool.free.erase(KeyOf(piece));
  if (begin > offset) {
    const BlockIndex rest = InsertAfter(piece, begin - offset);
    pool.free.insert(KeyOf(piece));
    piece = rest;
  }
  if (pieces_[piece].bytes > end - begin) pool.free.insert(KeyOf(InsertAfter(piece, end - begin)));
  pieces_[piece].mapped = false;
  reserved_ -= end - begin;
  Merge(piece, pieces_[piece].before);
  Merge(piece, pieces_[piece].after);
  pool.unmapped.insert(UnmappedKeyOf(piece));
}

bool CachingAllocator::ShouldSplit(const Piece& piece, int64_t bytes) const {
  const int64_t left = piece.bytes - bytes;
  if (piece.small || settings_.expandable_segments) return left >= kLeastBlock;
  return bytes < settings_.max_split_bytes && left > kLargestSmall;
}

CachingAllocator::BlockIndex CachingAllocator::Use(BlockIndex piece, int64_t bytes) {
  if (ShouldSplit(pieces_[piece], bytes))
    PoolOf(pieces_[piece]).free.insert(KeyOf(InsertAfter(piece, bytes)));
  pieces_[piece].in_use = true;
  allocated_ += pieces_[piece].bytes;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return piece;
}

void CachingAllocator::Free(BlockIndex block) {
  allocated_ -= pieces_[block].bytes;
  pieces_[block].in_use = false;
  Merge(block, pieces_[block].before);
  Merge(block, pieces_[block].after);
  PoolOf(pieces_[block]).free.insert(KeyOf(block));
}

// Where a limit is set for what may be split: as many oversized blocks as give room for this one, the largest first.
void CachingAllocator::GiveBackLarger(int64_t bytes, uint64_t stream) {
  if (settings_.max_split_bytes == AllocatorSettings::kNoLimit || bytes <= kLargestSmall) return;
  const auto& free = large_.free;
  const int64_t least = std::max(bytes, settings_.max_split_bytes);
  auto each = free.lower_bound({stream, least, 0, 0});
  if (each != free.end() && each->stream == stream) return GiveBack(each->piece);
  std::vector<BlockIndex> larger;
  int64_t sum = 0;
  while (sum < least && each != free.begin()) {
    --each;
    if (each->stream != stream || each->bytes < settings_.max_split_bytes) break;
    larger.push_back(each->piece);
    sum += each->bytes;
  }
  for (const BlockIndex piece : larger) GiveBack(piece);
}

void CachingAllocator::GiveBack(BlockIndex piece) {
  if (pieces_[piece].expandable) return Unmap(piece);
  if (pieces_[piece].before != kNone || pieces_[piece].after != kNone) return;  // a part of it is in use
  PoolOf(pieces_[piece]).free.erase(KeyOf(piece));
  reserved_ -= pieces_[piece].bytes;
  spare_.push_back(piece);
}

void CachingAllocator::GiveBackSegment(size_t number) {
  if (number >= made_.size()) return;
  for (Pool* pool : {&small_, &large_}) {
    const auto found = std::ranges::find(pool->free, made_[number], &Key::address);
    if (found != pool->free.end()) return GiveBack(found->piece);
  }
}

void CachingAllocator::GiveBackAll(bool small) {
  std::vector<BlockIndex> all;
  for (const Key& key : PoolOf(small).free) all.push_back(key.piece);
  for (const BlockIndex piece : all) GiveBack(piece);
}

void CachingAllocator::ReleaseCached() {
  GiveBackAll(false);
  GiveBackAll(true);
}

std::vector<CachingAllocator::BlockIndex> CachingAllocator::Adopt(const Segment& segment,
                                                                  const std::vector<Used>& used) {
  const int64_t before = driver_calls_;
  const auto taken = TakeSegment(segment.bytes, segment.stream, segment.small);
  if (!taken) return {};
  driver_calls_ = before;  // whoever made it did
  BlockIndex rest = *taken;
  int64_t rest_offset = 0;
  std::vector<BlockIndex> blocks;
  const auto leave = [&](int64_t bytes) {  // the first of the rest
    const BlockIndex piece = rest;
    rest_offset += bytes;
    rest = bytes < pieces_[piece].bytes ? InsertAfter(piece, bytes) : kNone;
    return piece;
  };
  for (const Used& each : used) {
    if (each.offset > rest_offset) PoolOf(segment.small).free.insert(KeyOf(leave(each.offset - rest_offset)));
    blocks.push_back(leave(each.bytes));
    pieces_[blocks.back()].in_use = true;
    allocated_ += each.bytes;
  }
  if (rest != kNone) PoolOf(segment.small).free.insert(KeyOf(rest));
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return blocks;
}

CachingAllocator::Cached CachingAllocator::cached() const {
  Cached cached;
  for (const Pool* pool : {&small_, &large_}) {
    for (const Key& key : pool->free) {
      cached.bytes += key.bytes;
      ++cached.pieces;
      cached.largest = std::max(cached.largest, key.bytes);
    }
  }
  return cached;
}

bool CachingAllocator::IsFree(BlockIndex piece) const { return piece != kNone && !pieces_[piece].in_use; }

// What is not taken by anybody beside a free piece becomes part of it.
void CachingAllocator::Merge(BlockIndex into, BlockIndex neighbour) {
  if (!IsFree(neighbour) || pieces_[into].mapped != pieces_[neighbour].mapped) return;
  Piece& to = pieces_[into];
  const Piece& from = pieces_[neighbour];
  Pool& pool = PoolOf(to);
  if (from.mapped)
    pool.free.erase(KeyOf(neighbour));
  else
    pool.unmapped.erase(UnmappedKeyOf(neighbour));
  if (to.before == neighbour) {
    to.address = from.address;
    to.before = from.before;
    if (to.before != kNone) pieces_[to.before].after = into;
  } else {
    to.after = from.after;
    if (to.after != kNone) pieces_[to.after].before = into;
  }
  to.bytes += from.bytes;
  spare_.push_back(neighbour);
}

CachingAllocator::BlockIndex CachingAllocator::NewPiece(const Piece& piece) {
  if (spare_.empty()) {
    pieces_.push_back(piece);
    return static_cast<BlockIndex>(pieces_.size() - 1);
  }
  const BlockIndex index = spare_.back();
  spare_.pop_back();
  pieces_[index] = piece;
  return index;
}

// Divides a piece: its first `bytes` stay, the rest is a new piece of the same kind, in no pool yet.
CachingAllocator::BlockIndex CachingAllocator::InsertAfter(BlockIndex before, int64_t bytes) {
  Piece rest = pieces_[before];
  rest.address += static_cast<uint64_t>(bytes);
  rest.bytes -= bytes;
  rest.in_use = false;
  rest.before = before;
  const BlockIndex index = NewPiece(rest);
  if (rest.after != kNone) pieces_[rest.after].before = index;
  pieces_[before].after = index;
  pieces_[before].bytes = bytes;
  return index;
}

}  // namespace fullbore::memory
