#include "tune/trial/throughput.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "explain/diagnose/statistics.h"

namespace fullbore::tune {

using record::HostOther;
using record::Step;

void Throughput::Add(int rank, const Step& step, int64_t prepared) {
  Rank& one = ranks_[rank];
  one.steps.push_back(step);
  one.prepared = std::max(one.prepared, prepared);
  ++steps_;
  last_ns_ = std::max(last_ns_, step.end_ns);
}

int64_t Throughput::lead_steps() const {
  return ranks_.empty() ? 0 : static_cast<int64_t>(ranks_.begin()->second.steps.size());
}

size_t Throughput::WarmupOf(const Rank& rank) {
  std::vector<double> wall_ns;
  for (const Step& step : rank.steps) wall_ns.push_back(static_cast<double>(step.wall_ns));
  size_t warmup = diagnose::WarmupSteps(wall_ns, wall_ns.size() / 2);
  int64_t batches = 0;
  for (size_t i = 0; i < rank.steps.size(); ++i) {
    batches += std::max(1, rank.steps[i].batches);
    const bool prepared = batches <= rank.prepared;
    const bool compiled = rank.steps[i].host_other_ns[static_cast<size_t>(HostOther::kCompilation)] > 0;
    // A program that compiles without end has no later state to wait for.
    if (prepared || (compiled && i < rank.steps.size() / 2)) warmup = std::max(warmup, i + 1);
  }
  return warmup;
}

std::optional<Estimate> Throughput::Steady(bool in_steps) const {
  if (ranks_.empty()) return std::nullopt;
  const Rank& lead = ranks_.begin()->second;
  const size_t warmup = WarmupOf(lead);
  if (warmup >= lead.steps.size()) return std::nullopt;
  const bool counts_samples =
      !in_steps && std::all_of(lead.steps.begin() + static_cast<std::ptrdiff_t>(warmup), lead.steps.end(),
                               [](const Step& step) { return step.samples > 0; });
  const auto count = [&](const Step& step) {
    return counts_samples ? static_cast<double>(step.samples) : 1.0;
  };
  std::vector<double> work, seconds;
  double waited = 0;
  for (size_t i = warmup; i < lead.steps.size(); ++i) {
    work.push_back(count(lead.steps[i]));
    seconds.push_back(static_cast<double>(lead.steps[i].wall_ns) / 1e9);
    waited += static_cast<double>(lead.steps[i].share_ns[Index(record::Share::kDataWait)]) / 1e9;
  }
  const auto interval = diagnose::RatioInterval(work, seconds);
  if (!interval) return std::nullopt;
  Estimate estimate;
  estimate.steps = static_cast<int64_t>(work.size());
  estimate.warmup_steps = static_cast<int64_t>(warmup);
  estimate.seconds = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  estimate.counts_samples = counts_samples;
  estimate.busy = 1 - waited / estimate.seconds;
  // Ranks step together: the others have their samples in the same time, and steps are nobody's twice.
  double all = interval->mean;
  const int64_t begin_ns = lead.steps[warmup].end_ns - lead.steps[warmup].wall_ns;
  for (auto rank = std::next(ranks_.begin()); rank != ranks_.end() && counts_samples; ++rank) {
    double samples = 0, time = 0;
    for (const Step& step : rank->second.steps) {
      if (step.end_ns <= begin_ns) continue;
      samples += static_cast<double>(step.samples);
      time += static_cast<double>(step.wall_ns) / 1e9;
    }
    if (time > 0) all += samples / time;
  }
  const double factor = all / interval->mean;
  estimate.rate = all;
  estimate.low = std::max(0.0, interval->low * factor);
  estimate.high = interval->high * factor;
  return estimate;
}

int64_t PreparedBatches(const record::RankInfo& rank) {
  int64_t most = 0;
  for (const record::Loader& loader : rank.loaders)
    most = std::max(most, 2 * loader.num_workers * loader.prefetch_factor.value_or(2));
  return most;
}

std::optional<Estimate> SteadyReadings(const std::vector<double>& values) {
  std::vector<double> times;
  for (const double value : values) times.push_back(value > 0 ? 1e9 / value : 1e18);
  const size_t warmup = diagnose::WarmupSteps(times, times.size() / 2);
  const std::vector<double> steady(values.begin() + static_cast<std::ptrdiff_t>(warmup), values.end());
  if (steady.size() < 3) return std::nullopt;
  const auto n = static_cast<double>(steady.size());
  const double mean = std::accumulate(steady.begin(), steady.end(), 0.0) / n;
  double squares = 0;
  for (const double value : steady) squares += (value - mean) * (value - mean);
  double half = diagnose::StudentT95(steady.size() - 1) * std::sqrt(squares / (n - 1) / n);
  // Many programs print their average since the start. Such values resemble each other and tell less than as many
  // independent ones would: batch means show a part of that.
  if (const auto interval = diagnose::RatioInterval(steady, std::vector<double>(steady.size(), 1)))
    half = std::max(half, (interval->high - interval->low) / 2);
  Estimate estimate;
  estimate.rate = mean;
  estimate.low = std::max(0.0, mean - half);
  estimate.high = mean + half;
  estimate.steps = static_cast<int64_t>(steady.size());
  estimate.warmup_steps = static_cast<int64_t>(warmup);
  estimate.counts_samples = true;
  return estimate;
}

}  // namespace fullbore::tune
