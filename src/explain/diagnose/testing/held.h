// Devices' memory made by hand, as the hook would have weighed it.
#pragma once

#include <vector>

#include "explain/diagnose/held_memory.h"

namespace fullbore::diagnose::testing {

inline constexpr double kMB = 1e6;

// 100 MB of weights, as much of gradients, twice that of states, and peaks of batches whose rows are `width` tokens wide.
inline HeldMemory AHeldMemory(std::vector<ReachedPeak> peaks) {
  HeldMemory held;
  held.weights["float32"] = held.gradients["float32"] = 100 * kMB;
  held.states["exp_avg"]["float32"] = held.states["exp_avg_sq"]["float32"] = 100 * kMB;
  held.peaks = std::move(peaks);
  held.total = 10'000 * kMB;
  held.outside = 500 * kMB;
  return held;
}

inline ReachedPeak APeak(double rows, double width, double bytes) {
  return {{rows, width, rows * width}, bytes, false};
}

// 400 MB that stay, and so much for each token.
inline ReachedPeak APeakOnALine(double rows, double width, double bytes_per_token = 0.1 * kMB) {
  return APeak(rows, width, 400 * kMB + rows * width * bytes_per_token);
}

}  // namespace fullbore::diagnose::testing
