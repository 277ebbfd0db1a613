#include "explain/memory/replay.h"

#include <algorithm>
#include <cstdlib>

namespace fullbore::memory {

namespace {

class Replayer {
 public:
  Replayer(const History& history, const ReplayOptions& options)
      : history_(history), options_(options), allocator_(options.settings, options.capacity) {
    blocks_.resize(history.lives.size());
  }

  Replayed Run(const ReplayObserver& observer) {
    if (!Begin()) return Done();
    for (const Act& act : history_.acts) {
      if (!Do(act)) break;
      if (options_.as_recorded) Compare(act);
      if (observer) observer(act, allocator_);
    }
    return Done();
  }

 private:
  int64_t BytesOf(size_t life) const {
    return options_.bytes.empty() ? history_.lives[life].bytes : options_.bytes[life];
  }

  // What stood before the first event: where it stood, if that is known and still true.
  bool Begin() {
    const bool was_expandable = std::any_of(history_.segments.begin(), history_.segments.end(),
                                            [](const Segment& segment) { return segment.expandable; });
    const bool where_it_was =
        !options_.settings.expandable_segments && !was_expandable && options_.bytes.empty();
    if (where_it_was) {
      AdoptSegments();
      return true;
    }
    return std::all_of(history_.earlier.begin(), history_.earlier.end(),
                       [&](size_t life) { return Allocate(life, 0); });
  }

  void AdoptSegments() {
    size_t next = 0;  // of the earlier lives
    for (const Segment& segment : history_.segments) {
      const uint64_t end = segment.address + static_cast<uint64_t>(segment.bytes);
      std::vector<size_t> lives;
      for (; next < history_.earlier.size() && history_.lives[history_.earlier[next]].address < end; ++next) {
        if (history_.lives[history_.earlier[next]].address >= segment.address)
          lives.push_back(history_.earlier[next]);
      }
      AdoptSegment(segment, lives);
    }
  }

  // A block is as large as what was asked for, rounded; or up to the next where what is between is too small to have
  // been split off it. A life without room, of a record that contradicts itself, is left out.
  void AdoptSegment(const Segment& segment, const std::vector<size_t>& lives) {
    std::vector<CachingAllocator::Used> used;
    std::vector<size_t> kept;
    const auto offset_of = [&](size_t life) {
      return static_cast<int64_t>(history_.lives[life].address - segment.address);
    };
    for (size_t i = 0; i < lives.size(); ++i) {
      const int64_t offset = offset_of(lives[i]);
      const int64_t room = (i + 1 < lives.size() ? offset_of(lives[i + 1]) : segment.bytes) - offset;
      if (room <= 0) continue;
      const int64_t left = room - allocator_.Rounded(history_.lives[lives[i]].bytes);
      const bool splits = left > (segment.small ? 0 : kLeastLeftOfLarge);
      used.push_back({offset, splits ? room - left : room});
      kept.push_back(lives[i]);
    }
    const auto blocks = allocator_.Adopt(segment, used);
    for (size_t i = 0; i < blocks.size(); ++i) blocks_[kept[i]] = blocks[i];
  }

  bool Do(const Act& act) {
    switch (act.kind) {
      case Act::Kind::kAllocate:
        return Allocate(act.life, act.event);
      case Act::Kind::kFree:
        return Free(act.life);
      case Act::Kind::kRelease:
        return GivesBackOneByOne() || Release();
      case Act::Kind::kRetry:
        return !options_.as_recorded || GivesBackOneByOne() || Release();
      case Act::Kind::kGiveBack:
        if (GivesBackOneByOne()) allocator_.GiveBackSegment(act.life);
        return true;
      case Act::Kind::kFail:
        return Retry(act);
    }
    return true;
  }

  // As recorded, each segment that went goes: often these are not all that is free. Of expandable ones only pages go.
  bool GivesBackOneByOne() const { return options_.as_recorded && !options_.settings.expandable_segments; }

  bool Allocate(size_t life, size_t event) {
    const auto block = allocator_.Allocate(BytesOf(life), history_.lives[life].stream);
    if (!block) failed_ = event;
    if (!block) return false;
    blocks_[life] = *block;
    return true;
  }

  bool Release() {
    allocator_.ReleaseCached();
    return true;
  }

  bool Free(size_t life) {
    if (blocks_[life]) allocator_.Free(*blocks_[life]);
    blocks_[life].reset();
    return true;
  }

  // What the program did not get: it went on without. Here it may fit.
  bool Retry(const Act& act) {
    if (options_.as_recorded) return true;
    const auto block = allocator_.Allocate(act.bytes, act.stream);
    if (!block) failed_ = act.event;
    if (!block) return false;
    allocator_.Free(*block);
    return true;
  }

  void Compare(const Act& act) {
    // Segments of the same request are recorded before it.
    if (act.kind == Act::Kind::kAllocate)
      off_ = std::max(off_, std::abs(allocator_.reserved() - history_.reserved[act.event]));
  }

  Replayed Done() const {
    return {allocator_.peak_allocated(),
            allocator_.peak_reserved(),
            allocator_.retries(),
            allocator_.driver_calls(),
            failed_,
            off_};
  }

  static constexpr int64_t kLeastLeftOfLarge = int64_t{1} << 20;

  const History& history_;
  const ReplayOptions& options_;
  CachingAllocator allocator_;
  std::vector<std::optional<CachingAllocator::BlockIndex>> blocks_;  // of each life
  std::optional<size_t> failed_;
  int64_t off_ = 0;
};

}  // namespace

Replayed Replay(const History& history, const ReplayOptions& options, const ReplayObserver& observer) {
  return Replayer(history, options).Run(observer);
}

}  // namespace fullbore::memory
