// Several ranks of one run: their clocks are compared where they meet, at collectives, which end everywhere at the same
// time, and at a send with its receive. The time that each rank waits inside for the last one to arrive is separated from
// the time of the exchange itself.
//
// Who waits in a collective waits for a rank that is late. Who waits in a receive waits for the stage of a pipeline that
// computes what it is to receive: that is the pipeline's bubble, and happens however even the stages are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/recording.h"
#include "timeline/device/shares.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

enum class Role : uint8_t {
  kCollective,  // meets all ranks of its group
  kSend,
  kReceive,
  kExchange,  // one or the other, or both in one kernel
};

struct Arrival {  // one collective, send or receive on one rank
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint32_t kind = 0;       // into Arrivals::kinds
  int32_t peer = -1;       // of a send or receive: the other rank, -1 where not recorded
  int64_t exposed_ns = 0;  // no computation ran beside it
};

struct Arrivals {
  std::vector<std::string> kinds;  // "all_reduce/default_pg"
  std::vector<Arrival> list;       // by begin
  std::vector<int> group_size;     // by kind, -1 where not recorded
  int rank = -1;                   // as peers number it

  Role RoleOf(const Arrival& arrival) const;
  int SizeOf(size_t arrival) const;  // of its group, -1 where not recorded
};

Arrivals ArrivalsOf(const DeviceTrace& trace, const ExposedTime& exposed = {});
// Of a later recording of the same process.
void Append(const Arrivals& next, Arrivals* arrivals);

struct RankWaits {
  int64_t shift_ns = 0;           // to be added to this rank's times; 0 where clocks agree
  std::vector<int64_t> wait_ns;   // by arrival; -1 where its partners were not found
  std::vector<uint32_t> meeting;  // by arrival: the collective's number, the same on all ranks; 0 as above
  // By arrival: a send or receive between stages of a pipeline, whether or not its partner was found.
  std::vector<bool> of_stages;
  bool together = false;  // there are other ranks
};

struct RankComparison {
  std::vector<RankWaits> ranks;
  std::vector<std::string> notes;
};

RankComparison CompareRanks(const std::vector<Arrivals>& ranks);

// Adds the waits of a rank to its steps and its tables; both count in the rank's own clock. What it waits for other
// stages of a pipeline is no waiting for a late rank: Noticed::bubble_ns.
void ApplyWaits(const Arrivals& arrivals, const RankWaits& waits, record::RankInfo* info);

void ShiftTimes(int64_t by_ns, record::RankInfo* info);
void ShiftTimes(int64_t by_ns, Arrivals* arrivals);

}  // namespace fullbore::timeline
