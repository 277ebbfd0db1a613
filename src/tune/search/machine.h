// The laboratory of a search on real programs: trials as processes of this machine or as jobs of a cluster, within a
// budget of time, and kept as they finish, so that an interrupted search can be resumed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/proof/trial_turns.h"
#include "tune/search/search.h"
#include "tune/trial/budget.h"
#include "tune/trial/kept.h"
#include "tune/trial/place.h"

namespace fullbore::tune {

class Machine : public Laboratory {
 public:
  // The budget begins now. Each trial and its outcome are announced through `place.say`. `kept` is not owned.
  Machine(Place place, MeasureOptions options, double budget_s, Kept& kept);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Trial Try(const Request& request) override;
  std::vector<Trial> TryAll(const std::vector<Request>& requests) override;
  std::optional<PairOfTrials> TryPair(const Request& before, const Request& after) override;
  std::optional<Known> Learn(const Trial& trial) override;
  bool IsOver() const override { return interrupted() || error_ || budget_.IsOver(); }
  std::optional<Time> time() const override { return Time{budget_.left_s(), budget_.all_s()}; }

  bool interrupted() const { return budget_.interrupted(); }
  int interrupted_by() const { return budget_.interrupted_by(); }
  const std::optional<Error>& error() const { return error_; }  // why a trial could not be started
  // Why there is no answer, or only a partial one; empty if it is complete.
  std::string Reason(const Answer& answer) const;

 private:
  void Announce(const Request& request, double most_s);
  void Tell(const Trial& trial) const;
  void Keep(const std::vector<Trial>& trials);

  Place place_;
  MeasureOptions options_;
  Budget budget_;
  TrialTurns turns_;
  Kept& kept_;
  std::optional<Error> error_;
  int count_ = 0;
};

}  // namespace fullbore::tune
