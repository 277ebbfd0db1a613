#include "explain/diagnose/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fullbore::diagnose {

namespace {

// A first stretch counts as warm-up when its median is this much slower than what follows...
constexpr double kSlowerBy = 1.10;
constexpr size_t kFewestValues = 10;
// ...and the shift in the mean of log times is this many standard errors: the 1 % point of the maximum of a
// standardised CUSUM over the candidate splits (Bonferroni over about 500 splits of a normal statistic).
constexpr double kSignificance = 4.0;
constexpr size_t kMinSteady = 5;
constexpr size_t kBatches = 20;

// The noise of log step times, from neighbouring differences, so that a shift in level does not count as
// noise.
double NoiseOf(const std::vector<double>& logs) {
  std::vector<double> differences;
  for (size_t i = 1; i < logs.size(); ++i) differences.push_back(std::abs(logs[i] - logs[i - 1]));
  constexpr double kMadToSigma = 1.4826;  // of a normal distribution
  return std::max(1e-3, Median(differences) * kMadToSigma / std::sqrt(2.0));
}

// The best split of logs[from..end) into a slow start and the rest, 0 where there is none.
size_t SlowStart(const std::vector<double>& logs, size_t from, size_t end) {
  const std::vector<double> rest(logs.begin() + static_cast<std::ptrdiff_t>(from),
                                 logs.begin() + static_cast<std::ptrdiff_t>(end));
  const size_t n = rest.size();
  const double noise = NoiseOf(rest);
  const double total = std::accumulate(rest.begin(), rest.end(), 0.0);
  size_t best = 0;
  double best_score = kSignificance, sum = 0;
  for (size_t k = 1; k + kMinSteady <= n; ++k) {
    sum += rest[k - 1];
    const auto before = static_cast<double>(k), after = static_cast<double>(n - k);
    const double shift = sum / before - (total - sum) / after;
    const double score = shift * std::sqrt(before * after / static_cast<double>(n)) / noise;
    if (score > best_score) {
      best_score = score;
      best = k;
    }
  }
  if (best == 0) return 0;
  const auto border = rest.begin() + static_cast<std::ptrdiff_t>(best);
  const double slow = Median({rest.begin(), border}), fast = Median({border, rest.end()});
  return slow - fast > std::log(kSlowerBy) ? best : 0;
}

}  // namespace

size_t WarmupSteps(const std::vector<double>& wall_ns, size_t last) {
  std::vector<double> logs;
  for (const double wall : wall_ns) logs.push_back(std::log(std::max(wall, 1.0)));
  last = std::min(last, logs.size() / 2);
  size_t warmup = 0, end = logs.size();
  while (warmup < last) {
    size_t more = SlowStart(logs, warmup, end);
    if (warmup + more > last) {  // a later change of the run, not warm-up: look before it
      end = warmup + more;
      continue;
    }
    // The very first step alone may be slow without moving a mean over many.
    if (more == 0 && warmup == 0 && logs.size() >= kMinSteady) {
      const std::vector<double> rest(logs.begin() + 1, logs.end());
      if (logs[0] - Quantile(rest, 0.95) > std::log(kSlowerBy)) more = 1;
    }
    if (more == 0) break;
    warmup += more;
  }
  return warmup;
}

std::optional<Interval> RatioInterval(const std::vector<double>& numerators,
                                      const std::vector<double>& denominators) {
  const size_t n = std::min(numerators.size(), denominators.size());
  if (n < kFewestValues) return std::nullopt;
  const size_t batches = std::min(kBatches, n / 2);
  std::vector<double> ratios;
  double all_numerators = 0, all_denominators = 0;
  for (size_t batch = 0; batch < batches; ++batch) {
    double numerator = 0, denominator = 0;
    for (size_t i = batch * n / batches; i < (batch + 1) * n / batches; ++i) {
      numerator += numerators[i];
      denominator += denominators[i];
    }
    all_numerators += numerator;
    all_denominators += denominator;
    if (denominator > 0) ratios.push_back(numerator / denominator);
  }
  if (ratios.size() < 2 || all_denominators <= 0) return std::nullopt;
  const double mean = all_numerators / all_denominators;
  double squares = 0;
  for (const double ratio : ratios) squares += (ratio - mean) * (ratio - mean);
  const auto count = static_cast<double>(ratios.size());
  const double half = StudentT95(ratios.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return Interval{mean, mean - half, mean + half};
}

std::optional<Line> LineThrough(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() < kFewestValues) return std::nullopt;
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += dx * dx, yy += dy * dy, xy += dx * dy;
  }
  if (xx <= 0) return std::nullopt;
  return Line{xy / xx, yy > 0 ? xy / std::sqrt(xx * yy) : 0};
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (at - static_cast<double>(low));
}

namespace {

// Cornish-Fisher expansion of the t quantile around the normal one, `z` (Abramowitz and Stegun, 26.7.5): right to 0.8 %
// where it is asked for.
double StudentFrom(double z, size_t degrees_of_freedom) {
  const auto v = static_cast<double>(std::max<size_t>(degrees_of_freedom, 1));
  const double g1 = (std::pow(z, 3) + z) / 4;
  const double g2 = (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / 96;
  const double g3 = (3 * std::pow(z, 7) + 19 * std::pow(z, 5) + 17 * std::pow(z, 3) - 15 * z) / 384;
  return z + g1 / v + g2 / (v * v) + g3 / (v * v * v);
}

}  // namespace

double StudentT95(size_t degrees_of_freedom) {
  if (degrees_of_freedom == 1) return 12.706;
  if (degrees_of_freedom == 2) return 4.303;
  return StudentFrom(1.959964, degrees_of_freedom);
}

double StudentT975(size_t degrees_of_freedom) {
  if (degrees_of_freedom == 1) return 25.452;
  if (degrees_of_freedom == 2) return 6.205;
  if (degrees_of_freedom == 3) return 4.177;
  return StudentFrom(2.241403, degrees_of_freedom);
}

}  // namespace fullbore::diagnose
