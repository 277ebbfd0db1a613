#include "serve/metrics_page.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "record/metrics.h"
#include "record/openmetrics.h"

namespace fullbore::serve {

namespace {

using record::OpenMetrics;
using Labels = OpenMetrics::LabelList;

Labels With(Labels labels, std::initializer_list<std::pair<std::string, std::string>> more) {
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

void AddTraining(const std::string& name, const watch::LiveRun& run, OpenMetrics& families) {
  const diagnose::Diagnosis& minute = run.of_window();
  const Labels labels = {{"run", name}};
  families.Add("fullbore_steps", "counter", "", "Optimizer steps of the first rank so far.", labels,
               static_cast<double>(run.steps()));
  if (minute.steps == 0) return;
  families.Add("fullbore_steps_per_second", "gauge", "", "Over the last minute.", labels, minute.steps_per_s);
  if (minute.samples_per_s)
    families.Add("fullbore_samples_per_second", "gauge", "", "Of all ranks, over the last minute.", labels,
                 *minute.samples_per_s);
  if (minute.tokens_per_s)
    families.Add("fullbore_tokens_per_second", "gauge", "",
                 "Padding and all, of all ranks, over the last minute.", labels, *minute.tokens_per_s);
  if (minute.useful_tokens_per_s)
    families.Add("fullbore_useful_tokens_per_second", "gauge", "", "Without padding, where that is known.",
                 labels, *minute.useful_tokens_per_s);
  if (minute.flops)
    families.Add("fullbore_model_flops_per_second", "gauge", "",
                 "Of the first rank, by the model's modules, over the last minute.", labels,
                 minute.flops->per_s);
  if (minute.flops && minute.flops->mfu)
    families.Add("fullbore_mfu_ratio", "gauge", "ratio", "The same over the device's peak.", labels,
                 *minute.flops->mfu);
  for (const diagnose::RankShares& rank : minute.ranks) {
    const Labels of = With(labels, {{"rank", std::to_string(rank.rank)}});
    families.Add("fullbore_step_seconds", "gauge", "seconds", "Mean step time over the last minute.", of,
                 rank.mean_step_ns / 1e9);
    for (const auto& [share, ratio] : rank.shares)
      families.Add("fullbore_share_ratio", "gauge", "ratio",
                   "Where a step's time went over the last minute; the shares of a rank add up to 1.",
                   With(of, {{"share", share}}), ratio);
  }
}

void AddVerdict(const std::string& name, const watch::Judgement& judgement, OpenMetrics& families) {
  if (judgement.finding.empty()) return;
  families.Add(
      "fullbore_finding_speedup_ratio", "gauge", "ratio",
      "The first finding since the start, and how many times as fast its fix is expected to make the run.",
      {{"run", name},
       {"finding", judgement.finding},
       {"cause", judgement.cause},
       {"severity", judgement.severity}},
      judgement.speedup);
}

// What our own recorders write. Anything else in a file could be a name that breaks the whole answer.
const record::MetricInfo* KnownMetric(const record::SeriesKey& key) {
  const auto all = record::AllMetrics();
  const auto info = std::ranges::find(all, key.name, &record::MetricInfo::name);
  const auto is_name = [](const auto& label) {
    return !label.first.empty() && label.first != "run" &&
           label.first.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
  };
  return info != all.end() && std::ranges::all_of(key.labels, is_name) ? &*info : nullptr;
}

// How many series were left out.
size_t AddSeries(const std::string& name, const record::Stage& stage, size_t most, OpenMetrics& families) {
  size_t added = 0, left_out = 0;
  for (const record::Series& series : stage.series) {
    const record::MetricInfo* info = KnownMetric(series.key);
    if (!info || series.readings.empty() || info->unit == "bitmask") continue;
    if (added == most) {
      ++left_out;
      continue;
    }
    ++added;
    Labels labels = {{"run", name}};
    labels.insert(labels.end(), series.key.labels.begin(), series.key.labels.end());
    families.AddGauge(record::PrometheusName(*info), std::string(record::PrometheusUnit(info->unit)),
                      "The newest reading; see docs/metrics.md.", labels, series.readings.back().value);
  }
  return left_out;
}

}  // namespace

std::string MetricsPage(const watch::RunsFolder& folder, const MetricsLimits& limits) {
  OpenMetrics families;
  std::map<std::string, double> states = {{"running", 0}, {"cut_off", 0}, {"ended", 0}};
  size_t shown = 0, cut_runs = 0, cut_series = 0;
  for (const auto& [name, run] : folder.runs()) {
    ++states[run->state == watch::RunState::kRunning ? "running"
             : run->state == watch::RunState::kEnded ? "ended"
                                                     : "cut_off"];
    const watch::LiveRun* live = folder.Live(name);
    if (!live || !live->seen()) continue;
    if (shown == limits.runs) {
      ++cut_runs;
      continue;
    }
    ++shown;
    AddTraining(name, *live, families);
    AddVerdict(name, live->judgement(), families);
    cut_series += AddSeries(name, live->window().stages.back(), limits.series_of_a_run, families);
  }
  for (const auto& [state, count] : states)
    families.Add("fullbore_runs", "gauge", "", "Runs in the directories that are watched.",
                 {{"state", state}}, count);
  families.Add("fullbore_cut_runs", "gauge", "",
               "Running runs that are left out here, beyond the first ones.", {},
               static_cast<double>(cut_runs));
  families.Add("fullbore_cut_series", "gauge", "",
               "Series of runs that are left out here, beyond the first ones.", {},
               static_cast<double>(cut_series));
  return families.Text();
}

}  // namespace fullbore::serve
