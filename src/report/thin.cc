#include "report/thin.h"

#include <algorithm>

namespace fullbore::report {

using record::Reading;
using record::StepWindow;

std::vector<Reading> Thin(const std::vector<Reading>& readings, size_t buckets) {
  if (readings.size() <= 2 * buckets) return readings;
  const int64_t begin_ns = readings.front().t_ns;
  const int64_t width_ns = (readings.back().t_ns - begin_ns) / static_cast<int64_t>(buckets) + 1;
  const auto bucket_of = [&](const Reading& reading) { return (reading.t_ns - begin_ns) / width_ns; };
  const auto by_value = [](const Reading& a, const Reading& b) { return a.value < b.value; };

  std::vector<Reading> kept;
  for (auto from = readings.begin(); from != readings.end();) {
    const int64_t bucket = bucket_of(*from);
    const auto to =
        std::find_if(from, readings.end(), [&](const Reading& r) { return bucket_of(r) != bucket; });
    const auto [low, high] = std::minmax_element(from, to, by_value);
    kept.push_back(*std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
    from = to;
  }
  return kept;
}

namespace {

void AddTo(StepWindow& sum, const StepWindow& window) {
  sum.end_ns = window.end_ns;
  sum.steps += window.steps;
  sum.samples += window.samples;
  sum.min_wall_ns = std::min(sum.min_wall_ns, window.min_wall_ns);
  sum.max_wall_ns = std::max(sum.max_wall_ns, window.max_wall_ns);
  for (size_t i = 0; i < record::kShareCount; ++i) sum.share_ns[i] += window.share_ns[i];
  for (size_t i = 0; i < record::kHostOtherCount; ++i) sum.host_other_ns[i] += window.host_other_ns[i];
}

}  // namespace

std::vector<StepWindow> Merge(const std::vector<StepWindow>& windows, size_t most) {
  const size_t together = (windows.size() + most - 1) / std::max<size_t>(most, 1);
  std::vector<StepWindow> merged;
  for (size_t i = 0; i < windows.size(); ++i) {
    if (i % together == 0) {
      merged.push_back(windows[i]);
    } else {
      AddTo(merged.back(), windows[i]);
    }
  }
  return merged;
}

}  // namespace fullbore::report
