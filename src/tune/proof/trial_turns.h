// Pairs of trials that are alive at the same time and take turns (tune/proof/turns.h), as long as that works: after two that
// could not, there are whole runs, one after the other.
#pragma once

#include <optional>
#include <utility>

#include "base/result.h"
#include "tune/proof/turns.h"
#include "tune/trial/budget.h"
#include "tune/trial/say.h"
#include "tune/trial/shelter.h"

namespace fullbore::tune {

class TrialTurns {
 public:
  // Where they are not `wanted`, there are none. `budget` is not owned.
  TrialTurns(Budget& budget, bool wanted, Say say)
      : budget_(budget), possible_(wanted), say_(std::move(say)) {}

  bool possible() const { return possible_; }
  // How long the two had together is in their `seconds`, by halves. Where they make no pair and nothing else ended it, be
  // it the user, the budget or one that fails by itself, it is said why, and they are possible no more. An error
  // where nothing can be started.
  Result<Turns> Take(Contender baseline, Contender candidate);

 private:
  Budget& budget_;
  bool possible_;
  Say say_;
  std::optional<Shelter> beside_;       // where the candidate's trials leave what they write
  std::pair<Settings, Settings> last_;  // of the last pair
  std::optional<Acquaintance> seen_;    // by it
};

}  // namespace fullbore::tune
