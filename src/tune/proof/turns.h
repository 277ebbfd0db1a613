// A pair of trials that are alive at the same time and take turns: one runs for a moment while the other stands (SIGSTOP to
// all its processes), in an order that a coin decides. So both meet the same machine, where whole runs, one after the
// other, meet two: on a shared one those differ by more than most changes are worth.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/proof/proof.h"
#include "tune/trial/measure.h"
#include "tune/trial/memory.h"
#include "tune/trial/turn_line.h"

namespace fullbore::tune {

// The rates of these slices, one slice of each beside the other. `high` and `low` together are the 95 % interval of the
// rates' ratio. Of steps where one slice does not know its samples.
struct RatesInTurns {
  Rate before, after;
  bool counts_samples = true;
};
RatesInTurns RatesOf(const std::vector<Slice>& before, const std::vector<Slice>& after);

// Whether slices tell how fast a program is of which something may go on while it stands (turn_line.h). Where that bends
// them, it shows: it is faster at the beginning of a slice than at its end, or waits less for its data, or is faster, than
// before it ever stood. Says what was seen; nothing where they do.
std::optional<std::string> WhatWentOn(const std::vector<Slice>& slices, const Warm& before);

struct Contender {
  MeasureOptions options;
  Settings settings;
  MemoryUse memory;  // that it took alone, where that is known
};

struct Turns {
  std::optional<PairOfTrials> pair;  // nothing where they could not take turns:
  std::string why;                   // the reason,
  std::optional<Trial> baseline;     // and what became of the baseline, where that ended before it had a turn
  std::optional<int> interrupted_by;  // a signal that they got
};

// Starts the baseline, the candidate once that has warmed up, and gives turns until the ratio of their rates is known to
// the precision of the baseline's options, or their time is over. Not where there is not enough memory for both, or
// where something goes on while one of them stands. This process must have one thread.
Turns TakeTurns(const Contender& baseline, const Contender& candidate);

}  // namespace fullbore::tune
