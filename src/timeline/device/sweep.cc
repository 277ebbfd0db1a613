#include "timeline/device/sweep.h"

#include <algorithm>

namespace fullbore::timeline {
namespace {

// For std::push_heap, which keeps the greatest on top.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.t_ns != b.t_ns ? a.t_ns > b.t_ns : a.delta > b.delta;
};

}  // namespace

DeviceSweep::DeviceSweep(size_t capacity, int64_t begin_ns, Sink* sink)
    : capacity_(std::max<size_t>(capacity, 1) * 2),
      heap_(std::make_unique<Event[]>(capacity_)),
      sink_(sink),
      swept_ns_(begin_ns),
      segment_ns_(begin_ns) {}

void DeviceSweep::Add(int64_t begin_ns, int64_t end_ns, Lane lane, uint32_t tag) {
  if (begin_ns < swept_ns_) {
    ++late_;
    begin_ns = swept_ns_;
  }
  if (end_ns <= begin_ns) return;
  while (size_ + 2 > capacity_) {
    ++forced_;
    PopFirst();
  }
  begin_ns = std::max(begin_ns, swept_ns_);
  if (end_ns <= begin_ns) return;
  const auto lane_index = static_cast<uint8_t>(lane);
  Push({begin_ns, tag, 1, lane_index});
  Push({end_ns, tag, -1, lane_index});
}

void DeviceSweep::AdvanceTo(int64_t t_ns) {
  while (size_ > 0 && heap_[0].t_ns < t_ns) PopFirst();
  swept_ns_ = std::max(swept_ns_, t_ns);
}

void DeviceSweep::Finish(int64_t end_ns) {
  while (size_ > 0) PopFirst();
  if (end_ns > segment_ns_) Emit(end_ns, kNoTag);
  swept_ns_ = std::max(swept_ns_, end_ns);
}

void DeviceSweep::Push(const Event& event) {
  heap_[size_++] = event;
  std::push_heap(heap_.get(), heap_.get() + size_, kLater);
}

void DeviceSweep::PopFirst() {
  std::pop_heap(heap_.get(), heap_.get() + size_, kLater);
  const Event event = heap_[--size_];
  swept_ns_ = std::max(swept_ns_, event.t_ns);
  uint32_t& active = active_[event.lane];
  const uint32_t bit = 1U << event.lane;
  if (event.delta > 0) {
    if (active++ > 0) return;
    Emit(event.t_ns, event.tag);
    mask_ |= bit;
  } else {
    if (--active > 0) return;
    Emit(event.t_ns, event.tag);
    mask_ &= ~bit;
  }
}

void DeviceSweep::Emit(int64_t until_ns, uint32_t next) {
  if (until_ns <= segment_ns_) return;
  sink_->Take({segment_ns_, until_ns, mask_, next});
  segment_ns_ = until_ns;
}

}  // namespace fullbore::timeline
