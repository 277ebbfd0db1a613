#include "cli/trial_turns.h"

#include <utility>

#include "base/print.h"
#include "base/secrets.h"

namespace fullbore::cli {

Result<tune::Turns> TrialTurns::Take(tune::Contender baseline, tune::Contender candidate) {
  if (!beside_) {
    auto made = tune::AnotherLike(baseline.options.shelter);
    if (!made) return made.error();
    beside_ = std::move(*made);
  }
  candidate.options.shelter = *beside_;
  budget_.Limit(baseline.options);
  budget_.Limit(candidate.options);
  const double left_s = budget_.left_s();
  tune::Turns turns = tune::TakeTurns(baseline, candidate);
  if (turns.interrupted_by) budget_.NoteInterrupt(*turns.interrupted_by);
  if (turns.pair) {
    turns.pair->before.seconds = turns.pair->after.seconds = (left_s - budget_.left_s()) / 2;
    return turns;
  }
  const bool failed_alone = turns.baseline && !turns.baseline->ok();
  if (budget_.interrupted() || budget_.IsOver() || failed_alone) return turns;
  possible_ = false;
  Print(stderr, "fullbore: they cannot take turns ({}): whole runs instead\n", MaskUrls(turns.why));
  return turns;
}

}  // namespace fullbore::cli
