// Whether something grows steadily and does not come back. Minima of stretches are looked at, so that what is collected
// from time to time counts as nothing; and the rise must not level off, as it does while caches fill.
#pragma once

#include <optional>
#include <vector>

#include "record/recording.h"

namespace fullbore::diagnose {

struct Growth {
  double per_s = 0, low = 0, high = 0;  // 95 %
  double rise = 0;                      // over the readings
};

// Least squares through the minima of stretches of at least so many readings; nothing if they do not rise all the way,
// or less and less.
std::optional<Growth> SteadyGrowth(const std::vector<record::Reading>& readings, size_t least_in_stretch = 2);

}  // namespace fullbore::diagnose
