// A pair of trials that are alive at the same time and take turns: one runs for a moment while the other stands (SIGSTOP to
// all its processes), in an order that a coin decides. So both meet the same machine, where whole runs, one after the
// other, meet two: on a shared one those differ by more than most changes are worth.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tune/proof/proof.h"
#include "tune/trial/measure.h"
#include "tune/trial/memory.h"
#include "tune/trial/turn_line.h"

namespace fullbore::tune {

struct Contender {
  MeasureOptions options;
  Settings settings;
  MemoryUse memory;  // that it took alone, where that is known
};

// What a pair showed of the two that another pair of the same need not find out.
struct Acquaintance {
  std::array<Warm, 2> warm;  // the baseline's, the candidate's
  bool may_go_on = false;    // something, while one of them stands
  size_t pairs = 1;          // that were made
};

struct Turns {
  std::optional<PairOfTrials> pair;   // nothing where they could not take turns:
  std::string why;                    // the reason,
  std::optional<Made> failed;         // and the one that cannot be measured alone either
  std::optional<int> interrupted_by;  // a signal that they got
  std::optional<Acquaintance> seen;   // of a pair
};

// Starts the baseline, the candidate once that has warmed up, and gives turns until the ratio of their rates is known to
// the precision of the baseline's options, another pair would tell more, or its share of the time is over. Not where there
// is not enough memory for both, or where something goes on while one of them stands. With what an earlier pair showed both
// start at the same time (there is memory for both), and are warm after as many steps. This process must have one thread.
Turns TakeTurns(const Contender& baseline, const Contender& candidate,
                const std::optional<Acquaintance>& earlier = std::nullopt);

}  // namespace fullbore::tune
