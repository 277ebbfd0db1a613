// Where a larger batch stops paying. The time of a step is close to t(B) = a + b*B: a once a step (launches, Python,
// the optimizer, exchanging gradients), b a sample. The throughput B / t(B) grows towards 1/b and is within a ratio of
// the best from the knee on, and a larger batch only takes memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fullbore::tune {

struct StepLine {
  double a = 0;  // seconds a step
  double b = 0;  // seconds a sample

  double RateAt(double batch) const { return batch / (a + b * batch); }
};

struct BatchPoint {
  double batch = 0;
  double rate = 0;  // samples/s
};

// Through all points, by least squares of the relative error; nothing for fewer than two different batches. Neither a
// nor b becomes negative, although noise and caches may suggest it.
std::optional<StepLine> FitLine(const std::vector<BatchPoint>& points);

// The smallest batch whose rate is at least `near` of `best`: near*T*a / (1 - near*T*b). Nothing if the line never
// reaches that.
std::optional<double> Knee(const StepLine& line, double best, double near);

}  // namespace fullbore::tune
