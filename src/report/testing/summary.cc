#include "report/testing/summary.h"

#include <algorithm>
#include <cmath>

#include "record/metrics.h"

namespace fullbore::report::testing {

namespace {

struct Total {
  int64_t steps = 0;
  int64_t samples = 0;
  int64_t wall_ns = 0;
  record::ShareTimes share_ns{};
};

std::map<std::string, double> Ratios(const Total& total) {
  std::map<std::string, double> ratios;
  for (size_t i = 0; i < record::kShareCount; ++i) {
    if (total.share_ns[i] == 0) continue;
    ratios[std::string(Name(static_cast<record::Share>(i)))] =
        static_cast<double>(total.share_ns[i]) / static_cast<double>(total.wall_ns);
  }
  return ratios;
}

Total TotalSince(const record::RankInfo& rank, int64_t steady_ns) {
  Total total;
  for (const record::StepWindow& window : rank.windows) {
    if (window.begin_ns < steady_ns) continue;
    total.steps += window.steps;
    total.samples += window.samples;
    for (size_t i = 0; i < record::kShareCount; ++i) {
      total.share_ns[i] += window.share_ns[i];
      total.wall_ns += window.share_ns[i];
    }
  }
  return total;
}

diagnose::Resource SummaryOf(const record::Series& series, int64_t begin_ns) {
  std::vector<double> values;
  double sum = 0;
  for (const record::Reading& reading : series.readings) {
    if (reading.t_ns < begin_ns) continue;
    values.push_back(reading.value);
    sum += reading.value;
  }
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
  };
  return {sum / static_cast<double>(values.size()), at(0.5), at(0.95), values.back(), series.key.unit};
}

void AddRank(const record::RankInfo& rank, const Total& total, diagnose::Diagnosis& d) {
  diagnose::RankShares shares;
  shares.rank = rank.rank;
  shares.device = rank.device;
  shares.steps = total.steps;
  shares.mean_step_ns = static_cast<double>(total.wall_ns) / static_cast<double>(total.steps);
  shares.shares = Ratios(total);
  d.ranks.push_back(shares);
}

}  // namespace

void Summarise(const record::Stage& stage, int64_t steady_ns, diagnose::Diagnosis& d) {
  d.begin_ns = steady_ns;
  d.end_ns = stage.end_ns;
  for (const record::Series& series : stage.series)
    d.resources[record::LabelledName(series.key)] = SummaryOf(series, steady_ns);
  if (stage.ranks.empty()) return;

  Total all;
  for (const record::RankInfo& rank : stage.ranks) {
    const Total total = TotalSince(rank, steady_ns);
    AddRank(rank, total, d);
    all.steps += total.steps;
    all.samples += total.samples;
    all.wall_ns += total.wall_ns;
    for (size_t i = 0; i < record::kShareCount; ++i) all.share_ns[i] += total.share_ns[i];
  }
  const auto ranks = static_cast<int64_t>(stage.ranks.size());
  for (const record::StepWindow& window : stage.ranks[0].windows) {
    if (window.begin_ns < steady_ns) d.warmup_steps += window.steps;
  }
  d.steps = all.steps / ranks;
  d.mean_step_ns = std::round(static_cast<double>(all.wall_ns) / static_cast<double>(all.steps));
  d.median_step_ns = std::round(d.mean_step_ns * 0.99);
  d.p95_step_ns = std::round(d.mean_step_ns * 1.08);
  d.shares = d.ranks.front().shares;
  d.device_shares = stage.ranks[0].device_activity;
  d.steps_per_s = 1e9 / d.mean_step_ns;
  if (stage.ranks[0].samples_known) {
    const double samples_per_s =
        static_cast<double>(all.samples * ranks) / (static_cast<double>(all.wall_ns) / 1e9);
    d.samples_per_s = samples_per_s;
    d.samples_per_s_low = samples_per_s * 0.994;
    d.samples_per_s_high = samples_per_s * 1.006;
  }
}

}  // namespace fullbore::report::testing
