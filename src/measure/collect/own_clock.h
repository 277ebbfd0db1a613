// The clock of a command that is made to stand at times: while it stands (SIGSTOP), so does its clock. Its processes say
// when things happened by the machine's clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "record/channel.h"

namespace fullbore::collect {

class OwnClock {
 public:
  // Each at a later time than the one before; a second Stand() in a row changes nothing.
  void Stand(int64_t now_ns) {
    if (!stands()) pauses_.push_back({now_ns, kOpen, stood_ns_});
  }
  void GoOn(int64_t now_ns) {
    if (!stands()) return;
    pauses_.back().end_ns = now_ns;
    stood_ns_ += now_ns - pauses_.back().begin_ns;
  }
  bool stands() const { return !pauses_.empty() && pauses_.back().end_ns == kOpen; }
  int64_t stood_ns() const { return stood_ns_; }  // without the pause that is under way

  // What it showed at this time of the machine's clock.
  int64_t At(int64_t ns) const {
    const auto later = std::ranges::upper_bound(pauses_, ns, {}, &Pause::begin_ns);
    if (later == pauses_.begin()) return ns;
    const Pause& last = *std::prev(later);
    return ns < last.end_ns ? last.begin_ns - last.stood_before_ns
                            : ns - last.stood_before_ns - (last.end_ns - last.begin_ns);
  }

  // Writes it all by this clock: when it was, and how long its parts lasted.
  void SetTimesOf(record::ChannelRecord& event) const {
    const int64_t lasted_ns = event.end_ns - event.begin_ns;
    event.begin_ns = At(event.begin_ns);
    event.end_ns = At(event.end_ns);
    const int64_t stood_ns = lasted_ns - (event.end_ns - event.begin_ns);
    const auto kind = static_cast<record::EventKind>(event.kind);
    if (kind == record::EventKind::kBackward && event.a != 0)
      event.a = At(event.a);  // when the rank's own part was done
    if (kind == record::EventKind::kFetch && stood_ns > 0) {
      // Only the part in which the command stood lasted longer than that.
      const int64_t samples = event.a & 0xffffffff, slowest_us = event.a >> 32, stood_us = stood_ns / 1'000;
      event.a = samples | (slowest_us > stood_us ? slowest_us - stood_us : slowest_us) << 32;
      event.c = event.c > stood_ns ? event.c - stood_ns : event.c;
    }
  }

 private:
  static constexpr int64_t kOpen = INT64_MAX;
  struct Pause {
    int64_t begin_ns, end_ns, stood_before_ns;
  };
  std::vector<Pause> pauses_;
  int64_t stood_ns_ = 0;
};

}  // namespace fullbore::collect
