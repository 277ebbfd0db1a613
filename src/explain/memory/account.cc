#include "explain/memory/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "explain/memory/batch.h"
#include "explain/memory/places.h"

namespace fullbore::memory {

namespace {

constexpr size_t kCurvePoints = 2000;
constexpr size_t kMostRefused = 100;  // that are told one by one
// A replay that is off by more than this of what was reserved does not answer for other settings.
constexpr double kMostOff = 0.01;
// What is kept of a line in each quarter of the record, and how often at least, for it to grow.
constexpr size_t kQuarters = 4;
constexpr int64_t kLeastKept = 8;

std::vector<LineUse> ByLine(const MemorySnapshot& snapshot, const std::map<StackIndex, LineUse>& by_stack) {
  std::map<std::string, LineUse> by_place;
  for (const auto& [stack, use] : by_stack) {
    LineUse& to = by_place[PlaceOf(snapshot, stack)];
    to.bytes += use.bytes;
    to.blocks += use.blocks;
  }
  std::vector<LineUse> lines;
  for (auto& [place, use] : by_place) lines.push_back({place, use.bytes, use.blocks});
  std::stable_sort(lines.begin(), lines.end(),
                   [](const LineUse& a, const LineUse& b) { return a.bytes > b.bytes; });
  return lines;
}

class Accountant {
 public:
  Accountant(const MemorySnapshot& snapshot, const Device& device, const AccountOptions& options)
      : snapshot_(snapshot), device_(device), options_(options), history_(HistoryOf(device)) {}

  DeviceAccount Account() {
    out_.device = device_.index;
    out_.events = device_.events.size();
    if (!device_.events.empty()) out_.span_us = TimeOf(device_.events.size() - 1);
    out_.complete = history_.complete();
    for (const size_t life : history_.earlier) out_.earlier_bytes += history_.lives[life].bytes;
    out_.peak_reserved = history_.peak_reserved();
    if (!history_.refusals.empty()) out_.capacity = CapacityAt(history_.refusals.front());
    out_.retries = std::count_if(history_.acts.begin(), history_.acts.end(),
                                 [](const Act& act) { return act.kind == Act::Kind::kRetry; });
    AccountForTheEnd();
    if (history_.acts.empty()) return std::move(out_);
    ReplayAsRecorded();
    LookAtThePeak();
    FindWhatGrows();
    if (CanJudge(out_)) AskWhatIf();
    return std::move(out_);
  }

 private:
  std::optional<int64_t> TimeOf(size_t event) const {
    const int64_t time_us = device_.events[event].time_us, first_us = device_.events.front().time_us;
    return time_us > 0 && first_us > 0 ? std::optional(time_us - first_us) : std::nullopt;
  }

  // Unknown where the device had room for a segment of that request: then it was not the device that refused.
  static std::optional<int64_t> CapacityAt(const Refusal& refusal) {
    constexpr int64_t kSegment = int64_t{20} << 20;
    if (refusal.device_free >= refusal.asked + kSegment) return std::nullopt;
    return std::max<int64_t>(refusal.reserved, 0) + refusal.device_free;
  }

  const std::string& PlaceOfStack(StackIndex stack) {
    const auto [known, is_new] = places_.try_emplace(stack);
    if (is_new) known->second = PlaceOf(snapshot_, stack);
    return known->second;
  }

  void AccountForTheEnd() {
    std::map<StackIndex, LineUse> by_stack;
    CachingAllocator::Cached& cached = out_.peak.cached;
    for (const Segment& segment : device_.segments) {
      out_.end.reserved += segment.bytes;
      for (const Block& block : segment.blocks) {
        if (block.state == Block::State::kFree) {
          cached = {cached.bytes + block.bytes, cached.pieces + 1, std::max(cached.largest, block.bytes)};
          continue;
        }
        out_.end.allocated += block.bytes;
        by_stack[block.stack].bytes += block.bytes;
        ++by_stack[block.stack].blocks;
      }
    }
    out_.end.time_us = out_.span_us;
    out_.peak.moment = out_.end;
    out_.peak.lines = ByLine(snapshot_, by_stack);
  }

  void ReplayAsRecorded() {
    ReplayOptions options;
    options.settings = snapshot_.settings;
    options.as_recorded = true;
    out_.collects_garbage =
        options.settings.garbage_collection_threshold > 0 &&
        std::ranges::find(history_.acts, Act::Kind::kGiveBack, &Act::kind) != history_.acts.end();
    const size_t stretch = history_.acts.size() / kCurvePoints + 1;
    size_t seen = 0;
    int64_t fullest = -1;
    out_.as_recorded = Replay(history_, options, [&](const Act& act, const CachingAllocator& allocator) {
      const Moment moment = {TimeOf(act.event), allocator.allocated(), history_.reserved[act.event]};
      if (seen++ % stretch == 0) out_.curve.push_back(moment);
      if (moment.allocated >= out_.curve.back().allocated) out_.curve.back() = moment;
      if (moment.allocated > fullest) {
        fullest = moment.allocated;
        peak_event_ = act.event;
        out_.peak.moment = moment;
      }
      if (act.kind == Act::Kind::kFail && out_.refused.size() < kMostRefused) {
        const Event& event = device_.events[act.event];
        out_.refused.push_back({moment, act.bytes, static_cast<int64_t>(event.address), allocator.cached(),
                                PlaceOfStack(event.stack)});
      }
    });
  }

  // Whether the life was there just after the event.
  static bool StoodAt(const Life& life, size_t event) {
    return (!life.born || *life.born <= event) && (!life.freed || *life.freed > event);
  }

  void LookAtThePeak() {
    const std::vector<int64_t> larger = BytesWithBatch(2);
    std::map<StackIndex, LineUse> by_stack;
    for (size_t i = 0; i < history_.lives.size(); ++i) {
      const Life& life = history_.lives[i];
      if (!StoodAt(life, peak_event_)) continue;
      out_.scaled_bytes += larger[i] - life.bytes;
      by_stack[life.stack].bytes += life.bytes;
      ++by_stack[life.stack].blocks;
    }
    out_.peak.lines = ByLine(snapshot_, by_stack);
    ReplayOptions options;
    options.settings = snapshot_.settings;
    options.as_recorded = true;
    Replay(history_, options, [&](const Act& act, const CachingAllocator& allocator) {
      if (act.event == peak_event_) out_.peak.cached = allocator.cached();
    });
  }

  // Asked for in each quarter of the record and kept to its end, by one line: an optimizer's states and a cache that
  // fills are asked for once.
  void FindWhatGrows() {
    struct Kept {
      std::array<int64_t, kQuarters> blocks{};
      int64_t bytes = 0;
    };
    std::map<std::string, Kept> by_place;
    for (const Life& life : history_.lives) {
      if (!life.born || life.freed || life.stack == 0) continue;  // without a stack, all would be one line
      Kept& kept = by_place[PlaceOfStack(life.stack)];
      ++kept.blocks[*life.born * kQuarters / device_.events.size()];
      kept.bytes += life.bytes;
    }
    for (const auto& [place, kept] : by_place) {
      int64_t blocks = 0;
      for (const int64_t each : kept.blocks) blocks += each;
      const int64_t least = *std::min_element(kept.blocks.begin(), kept.blocks.end());
      // Of what lives at the end some was only just made: evenly kept means half of an even share in each quarter.
      if (blocks < kLeastKept || least * 2 * static_cast<int64_t>(kQuarters) < blocks) continue;
      out_.growing.push_back({place, kept.bytes, blocks});
    }
    std::stable_sort(out_.growing.begin(), out_.growing.end(),
                     [](const Growth& a, const Growth& b) { return a.bytes > b.bytes; });
  }

  std::vector<int64_t> BytesWithBatch(double times) const {
    const std::vector<bool> grows = GrowWithTheBatch(snapshot_, history_, device_.events.size());
    std::vector<int64_t> bytes;
    bytes.reserve(history_.lives.size());
    for (size_t i = 0; i < history_.lives.size(); ++i) {
      const int64_t recorded = history_.lives[i].bytes;
      bytes.push_back(grows[i] ? std::llround(static_cast<double>(recorded) * times) : recorded);
    }
    return bytes;
  }

  void AskWhatIf() {
    ReplayOptions options;
    options.settings = snapshot_.settings;
    options.settings.expandable_segments = !snapshot_.settings.expandable_segments;
    if (out_.capacity) options.capacity = *out_.capacity;
    AddWhatIf(options.settings.expandable_segments ? "expandable_segments" : "no expandable_segments",
              options);
    options.settings = snapshot_.settings;
    for (const double times : options_.batches) {
      options.bytes = BytesWithBatch(times);
      AddWhatIf(fmt::format("batch={:g}x", times), options);
    }
  }

  void AddWhatIf(std::string name, const ReplayOptions& options) {
    WhatIf what_if;
    what_if.name = std::move(name);
    what_if.replayed = Replay(history_, options, [&](const Act& act, const CachingAllocator& allocator) {
      if (act.kind == Act::Kind::kFail && !what_if.reserved_at_refusal)
        what_if.reserved_at_refusal = allocator.peak_reserved();
    });
    out_.what_if.push_back(std::move(what_if));
  }

  const MemorySnapshot& snapshot_;
  const Device& device_;
  const AccountOptions& options_;
  const History history_;
  size_t peak_event_ = 0;
  std::map<StackIndex, std::string> places_;
  DeviceAccount out_;
};

}  // namespace

std::vector<DeviceAccount> AccountsOf(const MemorySnapshot& snapshot, const AccountOptions& options) {
  std::vector<DeviceAccount> accounts;
  for (const Device& device : snapshot.devices)
    accounts.push_back(Accountant(snapshot, device, options).Account());
  return accounts;
}

bool CanJudge(const DeviceAccount& account) {
  return account.as_recorded && account.complete && !account.collects_garbage &&
         static_cast<double>(account.as_recorded->off) <=
             kMostOff * static_cast<double>(account.peak_reserved);
}

}  // namespace fullbore::memory
