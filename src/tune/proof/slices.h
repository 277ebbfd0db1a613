// What the slices of two trials that took turns (turns.h) tell: how fast each is, and whether they can tell that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/trial/trial.h"
#include "tune/trial/turn_line.h"

namespace fullbore::tune {

// The rates of these slices, one slice of each beside the other. `high` and `low` together are the 95 % interval of the
// rates' ratio. Of steps where one slice does not know its samples.
//
// The ratio is that of undisturbed steps (Slice::undisturbed): what else goes on on a machine meets now the one and now the
// other, and slows some of their steps down, so that the mean of all needs several times as many slices (bench/slices.py).
// But slow steps may be the program's own, and then they count: pauses that are known (Slice::paused) by the mean of all
// slices, however few of them have any; and where one of the two has more slow steps than chance explains, the mean of
// all is compared, and else the interval leaves room for some (kOwnSlowness).
struct RatesInTurns {
  Rate before, after;
  bool counts_samples = true;
};
RatesInTurns RatesOf(const std::vector<Slice>& before, const std::vector<Slice>& after);

// Whether slices tell how fast a program is of which something may go on while it stands (turn_line.h). Where that bends
// them, it shows: it is faster at the beginning of a slice than at its end, or waits less for its data, or is faster, than
// before it ever stood. Says what was seen; nothing where they do.
std::optional<std::string> WhatWentOn(const std::vector<Slice>& slices, const Warm& before);

// Whether another pair tells more than going on with one that is known to that error (of the logarithm of its ratio), after
// so many seconds of slices and so many before them, in which it began.
bool AnotherTellsMore(double error, double seconds, double begin_seconds);
// How long a pair may take, of so many seconds that are left for it and others after as many as that.
double ShareOfPair(double left_seconds, size_t pairs_before);

}  // namespace fullbore::tune
