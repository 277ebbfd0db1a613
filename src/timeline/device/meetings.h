// Which collectives, sends and receives of several ranks are one: where they meet.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/device/arrivals.h"

namespace fullbore::timeline {

// Clocks of one machine agree to within a few us, those of machines with NTP to about a
// millisecond; a difference below this is ignored, because the end of a collective itself differs
// by tens of microseconds between ranks.
inline constexpr int64_t kClocksAgreeNs = 200'000;

// What a rank does again and again: which of its arrivals, in order. Numbered in 32 bits, as of many ranks these are
// most of what is kept.
struct Party {
  uint32_t rank = 0;
  std::vector<uint32_t> arrivals;
};

// The n-th arrivals of all parties are one meeting.
struct Meetings {
  std::vector<Party> parties;
  bool of_stages = false;  // a send with its receive

  size_t size() const { return parties[0].arrivals.size(); }
};

struct Matching {
  std::vector<Meetings> all;
  int64_t unmatched = 0;

  size_t meetings() const {
    size_t sum = 0;
    for (const Meetings& meetings : all) sum += meetings.size();
    return sum;
  }
};

Matching Match(const std::vector<Arrivals>& ranks);

inline const Arrival& ArrivalOf(const std::vector<Arrivals>& ranks, const Party& party, size_t meeting) {
  return ranks[party.rank].list[party.arrivals[meeting]];
}

// How much later the first party saw their meetings end, each by its own clock.
void AddDifferences(const std::vector<Arrivals>& ranks, const Party& first, const Party& other,
                    std::vector<int64_t>* differences);
// How far apart the middle half of the values lie.
int64_t SpreadOf(std::vector<int64_t> values);

}  // namespace fullbore::timeline
