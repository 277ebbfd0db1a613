#include "explain/memory/history.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace fullbore::memory {

namespace {

using Action = Event::Action;

constexpr int64_t kMost = int64_t{1} << 60;          // bytes: so that no sum of a made-up file overflows
constexpr int64_t kSmallSegment = int64_t{2} << 20;  // PyTorch's, of no other pool

bool GivesBack(Action action) { return action == Action::kSegmentFree || action == Action::kSegmentUnmap; }
bool Takes(Action action) { return action == Action::kSegmentAllocate || action == Action::kSegmentMap; }

class HistoryBuilder {
 public:
  explicit HistoryBuilder(const Device& device)
      : device_(device),
        has_stacks_(std::ranges::any_of(device.events, [](const Event& event) { return event.stack != 0; })) {
  }

  History Build() {
    for (at_ = 0; at_ < device_.events.size(); ++at_) Follow(device_.events[at_]);
    AddWhatStands();
    SortEarlier();
    FollowSegmentsBack();
    NumberSegments();
    return std::move(out_);
  }

 private:
  void Follow(const Event& event) {
    switch (event.action) {
      case Action::kAllocate:
        return Allocate(event);
      case Action::kFreeRequested:
        return NoteWhoFrees(event);
      case Action::kFree:
        return Free(event);
      case Action::kSegmentFree:
        GiveBack();
        return out_.acts.push_back({Act::Kind::kGiveBack, at_, 0, 0, 0});
      case Action::kSegmentUnmap:
        return GiveBack();
      case Action::kOutOfMemory:
        out_.acts.push_back({Act::Kind::kFail, at_, 0, event.bytes, event.stream});
        return out_.refusals.push_back({at_, event.bytes, static_cast<int64_t>(event.address), 0});
      default:
        return;
    }
  }

  size_t AddLife(const Event& event, std::optional<size_t> born) {
    out_.lives.push_back({event.bytes, event.stream, event.stack, event.address, born, std::nullopt, 0});
    return out_.lives.size() - 1;
  }

  void Allocate(const Event& event) {
    const size_t life = AddLife(event, at_);
    alive_[event.address] = life;
    out_.acts.push_back({Act::Kind::kAllocate, at_, life, 0, event.stream});
  }

  // Whoever frees it is known before the streams are done with it.
  void NoteWhoFrees(const Event& event) {
    if (const auto known = alive_.find(event.address); known != alive_.end())
      out_.lives[known->second].freed_stack = event.stack;
  }

  void Free(const Event& event) {
    const auto known = alive_.find(event.address);
    const bool earlier = known == alive_.end();
    const size_t life = earlier ? AddLife(event, std::nullopt) : known->second;
    if (earlier)
      out_.earlier.push_back(life);
    else
      alive_.erase(known);
    out_.lives[life].freed = at_;
    out_.acts.push_back({Act::Kind::kFree, at_, life, 0, event.stream});
  }

  // Whether the driver is asked again by whom it had refused. torch.cuda.empty_cache() has a line of its own, and is
  // told from that only where lines are recorded.
  bool IsOneRequest(const Event& gives, const Event& asks) const {
    const bool asks_again = Takes(asks.action) || asks.action == Action::kOutOfMemory;
    return asks_again && has_stacks_ && gives.stack == asks.stack;
  }

  // A row of segments that go is one call.
  void GiveBack() {
    if (at_ > 0 && GivesBack(device_.events[at_ - 1].action)) return;
    size_t next = at_;
    while (next < device_.events.size() && GivesBack(device_.events[next].action)) ++next;
    const bool retries =
        next < device_.events.size() && IsOneRequest(device_.events[at_], device_.events[next]);
    out_.acts.push_back({retries ? Act::Kind::kRetry : Act::Kind::kRelease, at_, 0, 0, 0});
  }

  // What the segments hold and no event made was there before.
  void AddWhatStands() {
    for (const Segment& segment : device_.segments) {
      for (const Block& block : segment.blocks) {
        if (block.state == Block::State::kFree || alive_.contains(block.address)) continue;
        out_.earlier.push_back(out_.lives.size());
        out_.lives.push_back(
            {block.requested, segment.stream, block.stack, block.address, std::nullopt, std::nullopt, 0});
      }
    }
  }

  void SortEarlier() {
    std::sort(out_.earlier.begin(), out_.earlier.end(),
              [&](size_t a, size_t b) { return out_.lives[a].address < out_.lives[b].address; });
  }

  void FollowSegmentsBack() {
    std::map<uint64_t, Segment> standing;
    int64_t reserved = 0;
    for (const Segment& segment : device_.segments) {
      reserved += segment.bytes;
      Segment& copy = standing[segment.address];
      copy = segment;
      copy.blocks.clear();
    }
    out_.reserved.assign(device_.events.size(), 0);
    for (size_t i = device_.events.size(); i-- > 0;) {
      const Event& event = device_.events[i];
      out_.reserved[i] = reserved;
      if (Takes(event.action)) reserved = std::max(reserved - event.bytes, -kMost);
      if (GivesBack(event.action)) reserved = std::min(reserved + event.bytes, kMost);
      if (event.action == Action::kSegmentAllocate) standing.erase(event.address);
      if (event.action == Action::kSegmentFree) {
        Segment& segment = standing[event.address];
        segment.address = event.address;
        segment.bytes = event.bytes;
        segment.stream = event.stream;
        segment.small = event.bytes == kSmallSegment;
      }
    }
    out_.reserved_before = reserved;
    for (Refusal& refusal : out_.refusals) refusal.reserved = out_.reserved[refusal.event];
    if (reserved == 0) return;  // expandable ones, too, whose pieces all came later
    for (auto& [address, segment] : standing) {
      if (segment.bytes > 0) out_.segments.push_back(std::move(segment));
    }
  }

  // Those that stood before the first event come first, in the order of their addresses.
  void NumberSegments() {
    std::unordered_map<uint64_t, size_t> numbers;
    for (const Segment& segment : out_.segments) numbers.emplace(segment.address, numbers.size());
    size_t made = numbers.size();
    auto act = out_.acts.begin();
    for (size_t i = 0; i < device_.events.size(); ++i) {
      const Event& event = device_.events[i];
      if (event.action == Action::kSegmentAllocate) numbers[event.address] = made++;
      if (event.action != Action::kSegmentFree) continue;
      act = std::find_if(act, out_.acts.end(),
                         [&](const Act& one) { return one.kind == Act::Kind::kGiveBack && one.event == i; });
      const auto number = numbers.find(event.address);
      act->life = number != numbers.end() ? number->second : made;
    }
  }

  const Device& device_;
  const bool has_stacks_;
  size_t at_ = 0;
  std::unordered_map<uint64_t, size_t> alive_;  // lives by address
  History out_;
};

}  // namespace

int64_t History::peak_reserved() const {
  return reserved.empty() ? reserved_before
                          : std::max(reserved_before, *std::max_element(reserved.begin(), reserved.end()));
}

History HistoryOf(const Device& device) { return HistoryBuilder(device).Build(); }

}  // namespace fullbore::memory
