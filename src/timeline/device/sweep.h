// The sweep: intervals of device activity in, segments of constant activity out. Every interval is two events
// (time, +-lane); between two events the set of active lanes is constant, so unions, overlaps and idle time
// follow directly, over any number of streams, exact to the nanosecond.
//
// Intervals may be out of order by as much as the sort window. Memory is fixed at construction and nothing is
// allocated afterwards, so it can run inside a training process. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "timeline/device/kinds.h"

namespace fullbore::timeline {

// [begin, end) with the lanes in `mask` active; mask 0 is an idle device, and then `next` is the tag of the
// interval that ended it (kNoTag at the end of the recording).
struct Segment {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint32_t mask = 0;
  uint32_t next = 0;
};
inline constexpr uint32_t kNoTag = ~0U;

class DeviceSweep {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void Take(const Segment& segment) = 0;  // in order, without holes
  };

  // `capacity` is the number of intervals that may be open or waiting in the sort window at once. Idle time
  // before the first interval counts from `begin_ns`.
  DeviceSweep(size_t capacity, int64_t begin_ns, Sink* sink);

  // Intervals of no length are ignored. A part before the time already swept is cut off and counted.
  void Add(int64_t begin_ns, int64_t end_ns, Lane lane, uint32_t tag);

  // Promises that no interval beginning before t_ns will follow.
  void AdvanceTo(int64_t t_ns);

  // Sweeps the rest, and idle time up to end_ns.
  void Finish(int64_t end_ns);

  uint64_t late() const { return late_; }      // intervals that came after their time had been swept
  uint64_t forced() const { return forced_; }  // events swept early because the window was full

 private:
  struct Event {
    int64_t t_ns;
    uint32_t tag;
    int8_t delta;
    uint8_t lane;
  };

  void Push(const Event& event);
  void PopFirst();
  void Emit(int64_t until_ns, uint32_t next);

  const size_t capacity_;
  std::unique_ptr<Event[]> heap_;  // the earliest event first; at equal times ends before begins
  size_t size_ = 0;
  Sink* const sink_;
  int64_t swept_ns_;    // everything before is final
  int64_t segment_ns_;  // where the open segment began
  uint32_t mask_ = 0;
  uint32_t active_[kLaneCount] = {};
  uint64_t late_ = 0;
  uint64_t forced_ = 0;
};

}  // namespace fullbore::timeline
