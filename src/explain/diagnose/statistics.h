// The statistics of steps: where the steady state begins, and how certain a mean is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fullbore::diagnose {

// How many steps at the start are warm-up (compilation, cuDNN search, cold caches): the largest k after which
// a change-point test sees the steps become faster, applied again to what remains. A single slow step among
// fast ones is not warm-up unless it is the first. Never more than `last` steps, nor more than half of them:
// slowness that lasts longer is normal for the run.
size_t WarmupSteps(const std::vector<double>& wall_ns, size_t last);

struct Interval {
  double mean = 0, low = 0, high = 0;
};

// 95 % interval of a ratio of sums (samples over time) from batch means: neighbouring steps depend on each
// other, batches of them hardly do. Nothing for fewer than 10 values.
std::optional<Interval> RatioInterval(const std::vector<double>& numerators,
                                      const std::vector<double>& denominators);

// A straight line through points, by least squares.
struct Line {
  double slope = 0;
  double correlation = 0;
};
// `x` and `y` have the same size. Nothing for fewer than 10 points, or where all lie above each other.
std::optional<Line> LineThrough(const std::vector<double>& x, const std::vector<double>& y);

double Median(std::vector<double> values);              // 0 when empty
double Quantile(std::vector<double> values, double q);  // by linear interpolation; 0 when empty

// Two-sided 95 % quantile of Student's t; and that of 97.5 %, for two intervals of which both are to hold in 95 %.
double StudentT95(size_t degrees_of_freedom);
double StudentT975(size_t degrees_of_freedom);

}  // namespace fullbore::diagnose
