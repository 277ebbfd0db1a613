// How much a setting changes training results: the losses of the first steps, compared with those of the script as it
// is. That is meaningful only if the script draws the same random numbers in each run; two trials of the same settings
// tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/trial/trial.h"

namespace fullbore::tune {

// A step's difference is relative to the loss of the script as it is.
struct LossDifference {
  std::string setting;              // "precision=bf16", the whole of what differs
  int64_t steps = 0;                // that both trials have
  double largest = 0;               // of a step
  std::optional<int64_t> diverges;  // from this step on the loss is not a number, unlike without the setting
  std::optional<double> by_itself;  // between two trials of the same settings; nothing without such trials

  // Whether the script differs so much from itself that the comparison says nothing.
  bool IsNoise() const;
  bool IsSame() const;  // apart from sums that threads add in another order
};

// For each trial that differs from another, or from the first, in settings that keep the samples and their order but
// change the precision of the arithmetic. In the order of the trials, one for each combination of such settings.
std::vector<LossDifference> CompareLosses(const std::vector<Trial>& trials);

// The same for two commands, each with all its trials; `what` differs in the second. Nothing unless the losses of both
// are known.
std::optional<LossDifference> CompareLosses(const std::vector<Trial>& before, const std::vector<Trial>& after,
                                            const std::string& what);

std::string ToText(const LossDifference& difference);  // a sentence
nlohmann::ordered_json ToJson(const LossDifference& difference);

}  // namespace fullbore::tune
