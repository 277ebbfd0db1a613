#include "report/testing/made_series.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace fullbore::report::testing {

using record::Step;
using record::StepWindow;

double Noise::Around(double mean, double spread) {
  state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
  const double unit = static_cast<double>(state_ >> 11) / static_cast<double>(1ULL << 53);
  return mean + (2 * unit - 1) * spread;
}

record::Series MakeSeries(record::SeriesKey key, Span span, double per_second, double noise,
                          const std::function<double(double)>& shape) {
  Noise source(key.name.size() * 977 + key.labels.size());
  record::Series series{std::move(key), {}};
  const auto interval_ns = static_cast<int64_t>(1e9 / per_second);
  for (int64_t t_ns = span.begin_ns + interval_ns; t_ns <= span.end_ns; t_ns += interval_ns) {
    const double at_s = static_cast<double>(t_ns - span.begin_ns) / 1e9;
    series.readings.push_back({t_ns, std::max(0.0, source.Around(shape(at_s), noise))});
  }
  return series;
}

namespace {

void AddToWindow(std::vector<StepWindow>& windows, const Step& step) {
  if (windows.empty() || windows.back().end_ns - windows.back().begin_ns >= kNsPerSecond) {
    StepWindow window;
    window.begin_ns = step.end_ns - step.wall_ns;
    window.first_step = step.index;
    window.min_wall_ns = step.wall_ns;
    windows.push_back(window);
  }
  StepWindow& window = windows.back();
  window.end_ns = step.end_ns;
  window.steps += 1;
  window.samples += step.samples;
  window.min_wall_ns = std::min(window.min_wall_ns, step.wall_ns);
  window.max_wall_ns = std::max(window.max_wall_ns, step.wall_ns);
  for (size_t i = 0; i < record::kShareCount; ++i) window.share_ns[i] += step.share_ns[i];
}

}  // namespace

void AddSteps(record::RankInfo& rank, Span span, const std::function<StepShape(int64_t)>& shape,
              Noise& noise) {
  constexpr int64_t kStepsKept = 200;
  int64_t end_ns = span.begin_ns;
  for (int64_t index = 0;; ++index) {
    const StepShape made = shape(index);
    Step step;
    step.index = index;
    step.wall_ns = static_cast<int64_t>(noise.Around(1, made.noise) * static_cast<double>(made.wall_ns));
    step.end_ns = end_ns += step.wall_ns;
    if (end_ns > span.end_ns) return;
    step.samples = made.samples;
    step.batches = 1;
    int64_t left = step.wall_ns;
    for (const auto& [share, ratio] : made.shares) {
      const auto part = std::min(left, static_cast<int64_t>(ratio * static_cast<double>(step.wall_ns)));
      step.share_ns[record::Index(share)] = part;
      left -= part;
    }
    step.share_ns[record::Index(made.shares.back().first)] += left;
    if (index < kStepsKept) rank.steps.push_back(step);
    AddToWindow(rank.windows, step);
  }
}

}  // namespace fullbore::report::testing
