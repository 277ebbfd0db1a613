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
#include "timeline/device/arrivals.h"

namespace fullbore::timeline {

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

}  // namespace fullbore::timeline
