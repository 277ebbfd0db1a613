#include "explain/diagnose/growth.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "explain/diagnose/statistics.h"
#include "explain/diagnose/thresholds.h"

namespace fullbore::diagnose {

namespace {

constexpr size_t kStretches = 10, kMinStretches = 5;

// The least of each of some stretches of equal length, with the middle of its time in seconds.
std::vector<std::pair<double, double>> Minima(const std::vector<record::Reading>& readings,
                                              size_t least_in_stretch) {
  const size_t stretches = std::min(kStretches, readings.size() / least_in_stretch);
  std::vector<std::pair<double, double>> minima;
  for (size_t i = 0; i < stretches; ++i) {
    const auto begin = readings.begin() + static_cast<std::ptrdiff_t>(i * readings.size() / stretches);
    const auto end = readings.begin() + static_cast<std::ptrdiff_t>((i + 1) * readings.size() / stretches);
    const auto least =
        std::min_element(begin, end, [](const auto& a, const auto& b) { return a.value < b.value; });
    minima.emplace_back(static_cast<double>(least->t_ns) / 1e9, least->value);
  }
  return minima;
}

double Rise(const std::vector<std::pair<double, double>>& minima, size_t from, size_t to) {
  return (minima[to].second - minima[from].second) / std::max(1e-9, minima[to].first - minima[from].first);
}

}  // namespace

std::optional<Growth> SteadyGrowth(const std::vector<record::Reading>& readings, size_t least_in_stretch) {
  const auto minima = Minima(readings, least_in_stretch);
  if (minima.size() < kMinStretches) return std::nullopt;
  for (size_t i = 1; i < minima.size(); ++i) {
    if (minima[i].second <= minima[i - 1].second) return std::nullopt;
  }
  const size_t last = minima.size() - 1, middle = last / 2;
  if (Rise(minima, middle, last) < kStillGrowing * Rise(minima, 0, middle)) return std::nullopt;

  const auto n = static_cast<double>(minima.size());
  double mean_t = 0, mean_y = 0;
  for (const auto& [t, y] : minima) mean_t += t / n, mean_y += y / n;
  double tt = 0, ty = 0, residuals = 0;
  for (const auto& [t, y] : minima) tt += (t - mean_t) * (t - mean_t), ty += (t - mean_t) * (y - mean_y);
  const double slope = ty / tt;
  for (const auto& [t, y] : minima) residuals += std::pow(y - mean_y - slope * (t - mean_t), 2);
  const double half = StudentT95(minima.size() - 2) * std::sqrt(residuals / (n - 2) / tt);
  return Growth{slope, slope - half, slope + half, slope * (minima.back().first - minima.front().first)};
}

}  // namespace fullbore::diagnose
