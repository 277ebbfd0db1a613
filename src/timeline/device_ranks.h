// Several ranks of one run: their clocks are compared at the collectives, which end everywhere at the same
// time, and the time that each rank waits inside a collective for the last one to arrive is separated from
// the time of the collective itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/recording.h"
#include "timeline/device_trace.h"

namespace fullbore::timeline {

struct Arrival {  // one collective on one rank
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint32_t kind = 0;  // into Arrivals::kinds
};

struct Arrivals {
  std::vector<std::string> kinds;  // "all_reduce/default_pg"
  std::vector<Arrival> list;       // by begin
};

Arrivals ArrivalsOf(const DeviceTrace& trace);

struct RankWaits {
  int64_t shift_ns = 0;           // to be added to this rank's times; 0 where clocks agree
  std::vector<int64_t> wait_ns;   // by arrival; -1 where its partners were not found
  std::vector<uint32_t> meeting;  // by arrival: the collective's number, the same on all ranks; 0 as above
};

struct RankComparison {
  std::vector<RankWaits> ranks;
  std::vector<std::string> notes;
};

RankComparison CompareRanks(const std::vector<Arrivals>& ranks);

// Adds the waits of a rank to its steps and its tables. Call it before ShiftTimes:
// both use the rank's own clock.
void ApplyWaits(const Arrivals& arrivals, const RankWaits& waits, record::RankInfo* info);

void ShiftTimes(int64_t by_ns, record::RankInfo* info);
void ShiftTimes(int64_t by_ns, Arrivals* arrivals);

}  // namespace fullbore::timeline
