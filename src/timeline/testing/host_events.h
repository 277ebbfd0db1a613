// Events of a training's channel, and the steps that are made of them.
#pragma once

#include <numeric>
#include <vector>

#include "timeline/host_steps.h"

namespace fullbore::timeline::testing {

inline record::ChannelRecord Event(record::EventKind kind, int64_t begin, int64_t end, int64_t a = 0,
                                   uint16_t id = 0) {
  record::ChannelRecord event{};
  event.kind = static_cast<uint16_t>(kind);
  event.id = id;
  event.begin_ns = begin;
  event.end_ns = end;
  event.a = a;
  event.b = -1;
  return event;
}

// One step of an ordinary loop: next, forward, (loss), backward, optimizer, and 5 ns of
// something else before the next.
inline std::vector<record::ChannelRecord> UsualStep(int64_t at) {
  return {Event(record::EventKind::kNext, at, at + 40, 32),
          Event(record::EventKind::kForward, at + 40, at + 60, 1),
          Event(record::EventKind::kBackward, at + 62, at + 90),
          Event(record::EventKind::kOptimizer, at + 90, at + 95, 1)};
}

inline record::ChannelRecord Hit(int64_t at, record::Activity activity, int64_t feeds) {
  record::ChannelRecord hit = Event(record::EventKind::kLine, at, at, /*line id=*/3);
  hit.c = static_cast<int64_t>(activity);
  hit.d = feeds;
  return hit;
}

inline std::vector<record::Step> Feed(HostSteps& steps, const std::vector<record::ChannelRecord>& events) {
  for (const record::ChannelRecord& event : events) steps.OnEvent(event);
  return steps.TakeSteps(/*last=*/true);
}

// Of all shares.
inline int64_t Sum(const record::Step& step) {
  return std::accumulate(step.share_ns.begin(), step.share_ns.end(), int64_t{0});
}

}  // namespace fullbore::timeline::testing
