#include "tune/search/knee.h"

#include <algorithm>

namespace fullbore::tune {

std::optional<StepLine> FitLine(const std::vector<BatchPoint>& points) {
  // With weights 1/t^2, as each time is known to a ratio of itself.
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  double least = 0, most = 0;
  for (const BatchPoint& point : points) {
    if (point.rate <= 0 || point.batch <= 0) continue;
    const double time = point.batch / point.rate, weight = 1 / (time * time);
    w += weight;
    wx += weight * point.batch;
    wy += weight * time;
    wxx += weight * point.batch * point.batch;
    wxy += weight * point.batch * time;
    least = least == 0 ? point.batch : std::min(least, point.batch);
    most = std::max(most, point.batch);
  }
  if (most <= least) return std::nullopt;
  const double b = (w * wxy - wx * wy) / (w * wxx - wx * wx);
  const double a = (wy - b * wx) / w;
  if (a < 0) return StepLine{0, wxy / wxx};
  if (b < 0) return StepLine{wy / w, 0};
  return StepLine{a, b};
}

std::optional<double> Knee(const StepLine& line, double best, double near) {
  const double rest = 1 - near * best * line.b;
  if (rest <= 0 || best <= 0) return std::nullopt;
  return near * best * line.a / rest;
}

}  // namespace fullbore::tune
