// How far the figures of a run can be trusted. A machine that others use, or steps that vary widely, make a
// prediction a guess: that is said before anything else, and predictions carry it.
#pragma once

#include <optional>
#include <string>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

struct Noise {
  // Half of the 95 % interval of the mean step time, as a ratio of it; 0 where too few steps were seen to tell. Of
  // shares that were sampled, theirs.
  double of_mean_step = 0;
  bool sampled = false;
  // Cores that other programs keep busy while none is idle; nothing if they leave enough, or if not known.
  std::optional<double> contended_cores;
  double cores = 0;          // that the command may use
  bool single_step = false;  // all that was recorded, or all that is left after the warm-up
};

Noise NoiseOf(const View& view);

// One sentence for the first line of a report; empty where the figures hold.
std::string InWords(const Noise& noise);

// Adds the noise to the range of the finding's prediction; takes the prediction back where it drowns in it.
void Widen(Finding& finding, const Noise& noise);

}  // namespace fullbore::diagnose
