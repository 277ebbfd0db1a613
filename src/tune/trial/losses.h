// How far a setting changes training results: the losses of the first steps, beside those of the script as it is. It says
// something only of a script that draws the same random numbers in each run; two trials of the same settings show that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/trial/trial.h"

namespace fullbore::tune {

// A step's difference is relative to the loss of the script as it is.
struct LossDifference {
  std::string setting;  // "precision=bf16", the whole of what differs
  int64_t steps = 0;    // that both have
  double largest = 0;   // of a step
  std::optional<int64_t>
      diverges;  // from this step on the loss is not a number, which without the setting it is
  std::optional<double> by_itself;  // between two trials of the same settings; nothing where there were none

  // Whether the script differs from itself so much that the other says nothing.
  bool IsNoise() const;
  bool IsSame() const;  // but for sums that threads make in another order
};

// Of each trial that differs from another, or from the first, in settings that leave the samples and their order as they
// are but change how exactly is computed. In the order of the trials, one for each such settings.
std::vector<LossDifference> CompareLosses(const std::vector<Trial>& trials);

// The same of two commands, each as often as it was tried; `what` differs in the second. Nothing where not both say
// theirs.
std::optional<LossDifference> CompareLosses(const std::vector<Trial>& before, const std::vector<Trial>& after,
                                            const std::string& what);

std::string ToText(const LossDifference& difference);  // a sentence
nlohmann::ordered_json ToJson(const LossDifference& difference);

}  // namespace fullbore::tune
