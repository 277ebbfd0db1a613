// The throughput of a run while it goes on, with the interval that says how well it is known yet.
//
// The steady state begins where three things are over: what a change-point test calls warm-up; steps in which something
// was compiled; and the batches that a loader had prepared before anyone measured: twice its workers times their
// prefetch, because a full queue flatters a run that waits for data. The interval is that of batch means.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "record/recording.h"

namespace fullbore::tune {

struct Estimate {
  double rate = 0;  // samples/s of all ranks together, steps/s where samples are not known, or readings
  double low = 0, high = 0;  // 95 %
  int64_t steps = 0;         // of the steady state, of one rank; or readings
  int64_t warmup_steps = 0;
  double seconds = 0;           // of the steady state; 0 for readings
  bool counts_samples = false;  // rather than steps
  std::optional<double> busy;   // of a step: not waiting for data; nothing for readings

  // Half of the interval, as a ratio of the rate.
  double HalfWidth() const { return rate > 0 ? (high - low) / 2 / rate : 1; }
};

class Throughput {
 public:
  // `prepared`: how many batches the rank's loaders may have had ready when they began.
  void Add(int rank, const record::Step& step, int64_t prepared);

  int64_t steps() const { return steps_; }  // of all ranks
  int64_t lead_steps() const;               // of the first rank
  int64_t last_ns() const { return last_ns_; }
  // Nothing before ten steady steps. `in_steps`: where samples are known, too.
  std::optional<Estimate> Steady(bool in_steps = false) const;

 private:
  struct Rank {
    std::vector<record::Step> steps;
    int64_t prepared = 0;
  };
  static size_t WarmupOf(const Rank& rank);

  std::map<int, Rank> ranks_;
  int64_t steps_ = 0;
  int64_t last_ns_ = 0;
};

// That the rank's loaders may have ready at most: twice their workers times their prefetch.
int64_t PreparedBatches(const record::RankInfo& rank);

// The same of what a program prints of its own throughput: one value after another, each an average over a while.
// Nothing before three steady values.
std::optional<Estimate> SteadyReadings(const std::vector<double>& values);

}  // namespace fullbore::tune
