#include "watch/alert/past.h"

#include <algorithm>

#include "base/clock.h"
#include "record/metrics.h"

namespace fullbore::watch {

using record::Metric;
using record::Reading;

namespace {

constexpr int64_t kFillingNs = 600 * kNsPerSecond;
constexpr size_t kMostPaces = 20'000;  // a day of windows; then neighbours are put together

Pace PaceOf(const record::StepWindow& window) {
  Pace pace{window.end_ns, window.steps, window.samples, 0, window.max_wall_ns};
  for (const int64_t ns : window.share_ns) pace.working_ns += ns;
  for (const record::HostOther part : {record::HostOther::kCheckpoint, record::HostOther::kValidation})
    pace.working_ns -= window.host_other_ns[static_cast<size_t>(part)];
  return pace;
}

void HalveNumber(std::vector<Pace>& paces) {
  for (size_t i = 0; i + 1 < paces.size(); i += 2) {
    const Pace &a = paces[i], &b = paces[i + 1];
    paces[i / 2] = {b.end_ns, a.steps + b.steps, a.samples + b.samples, a.working_ns + b.working_ns,
                    std::max(a.longest_ns, b.longest_ns)};
  }
  paces.resize(paces.size() / 2);
}

const record::Series* SeriesOf(const record::Stage& stage, Metric metric, const record::Labels& labels = {}) {
  for (const record::Series& series : stage.series) {
    if (IsOf(series.key, metric) && series.key.labels == labels) return &series;
  }
  return nullptr;
}

// The last value at or before a time.
std::optional<double> At(const record::Series* series, int64_t t_ns) {
  if (!series) return std::nullopt;
  const auto after = std::ranges::upper_bound(series->readings, t_ns, {}, &Reading::t_ns);
  return after == series->readings.begin() ? std::nullopt : std::optional(std::prev(after)->value);
}

void Append(Filling& filling, const record::Series& used, const record::Series* less, int64_t from_ns,
            int64_t to_ns) {
  const auto begin = std::ranges::upper_bound(used.readings, from_ns, {}, &Reading::t_ns);
  for (auto reading = begin; reading != used.readings.end() && reading->t_ns <= to_ns; ++reading)
    filling.used.push_back({reading->t_ns, reading->value - At(less, reading->t_ns).value_or(0)});
  while (!filling.used.empty() && filling.used.front().t_ns < to_ns - kFillingNs) filling.used.pop_front();
}

}  // namespace

void Past::Take(const record::Stage& stage, int64_t now_ns) {
  TakeSteps(stage, now_ns);
  TakeFillings(stage, now_ns);
  taken_ns_ = std::max(taken_ns_, now_ns);
}

void Past::TakeSteps(const record::Stage& stage, int64_t now_ns) {
  for (size_t i = 0; i < stage.ranks.size(); ++i) {
    const record::RankInfo& rank = stage.ranks[i];
    if (i == 0) samples_known_ = rank.samples_known;
    for (const record::Step& step : rank.steps) {
      if (step.end_ns <= now_ns) last_step_ns_ = std::max(last_step_ns_, step.end_ns);
    }
    const int64_t before_ns = paces_.empty() ? INT64_MIN : paces_.back().end_ns;
    for (const record::StepWindow& window : rank.windows) {
      if (window.end_ns > now_ns || window.steps <= 0) continue;
      last_step_ns_ = std::max(last_step_ns_, window.end_ns);
      if (i > 0 || window.end_ns <= before_ns) continue;
      paces_.push_back(PaceOf(window));
      steps_ = std::max(steps_, window.first_step + window.steps);
    }
  }
  if (paces_.size() > kMostPaces) HalveNumber(paces_);
}

void Past::TakeFillings(const record::Stage& stage, int64_t now_ns) {
  const auto size = [&](const record::Series* series) { return At(series, now_ns).value_or(0); };
  const auto take = [&](const std::string& what, const record::Series* used, const record::Series* less,
                        double of) {
    if (!used || of <= 0) return;
    Filling& filling = fillings_[what];
    filling.what = what;
    filling.size = of;
    Append(filling, *used, less, taken_ns_, now_ns);
  };
  take("the machine's memory", SeriesOf(stage, Metric::kMemoryUsed), nullptr,
       size(SeriesOf(stage, Metric::kMemoryTotal)));
  take("the memory of the container or job", SeriesOf(stage, Metric::kCgroupMemoryUsed),
       SeriesOf(stage, Metric::kCgroupMemoryCache), size(SeriesOf(stage, Metric::kCgroupMemoryLimit)));
  for (const record::Series& series : stage.series) {
    if (!IsOf(series.key, Metric::kDiskSpaceUsed)) continue;
    const auto mount = series.key.labels.find("mount");
    if (mount == series.key.labels.end()) continue;
    const std::string what = "the disk at " + mount->second;
    take(what, &series, nullptr, size(SeriesOf(stage, Metric::kDiskSpaceTotal, series.key.labels)));
    if (const auto filling = fillings_.find(what); filling != fillings_.end()) filling->second.is_disk = true;
  }
}

}  // namespace fullbore::watch
