#include "tune/proof/trial_turns.h"

#include <fmt/format.h>

#include <utility>

#include "base/secrets.h"

namespace fullbore::tune {

Result<Turns> TrialTurns::Take(Contender baseline, Contender candidate) {
  if (!beside_) {
    auto made = AnotherLike(baseline.options.shelter);
    if (!made) return made.error();
    beside_ = std::move(*made);
  }
  candidate.options.shelter = *beside_;
  budget_.Limit(baseline.options);
  budget_.Limit(candidate.options);
  const double left_s = budget_.left_s();
  const std::pair both(baseline.settings, candidate.settings);
  if (both != last_) seen_.reset();
  last_ = both;
  Turns turns = TakeTurns(baseline, candidate, seen_);
  seen_ = turns.seen;
  if (turns.interrupted_by) budget_.NoteInterrupt(*turns.interrupted_by);
  if (turns.pair) {
    turns.pair->before.seconds = turns.pair->after.seconds = (left_s - budget_.left_s()) / 2;
    return turns;
  }
  if (budget_.interrupted() || budget_.IsOver() || turns.failed) return turns;
  possible_ = false;
  say_(fmt::format("they cannot take turns ({}): whole runs instead", MaskUrls(turns.why)));
  return turns;
}

}  // namespace fullbore::tune
