#include "serve/metrics_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "record/metrics.h"

namespace fullbore::serve {

namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

// A family's samples must follow one another, whichever run they are of.
class Families {
 public:
  void Add(const std::string& name, const char* type, const std::string& unit, const char* help,
           const Labels& labels, double value) {
    if (!std::isfinite(value)) return;
    Family& family = families_[name];
    family.type = type;
    family.unit = unit;
    if (family.help.empty()) family.help = help;
    std::string text;
    for (const auto& [key, of] : labels)
      text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", key, Escaped(of));
    const bool counts = std::string_view(type) == "counter";
    // The same labels twice would make the whole answer invalid.
    if (family.seen.insert(text).second)
      family.samples += fmt::format("{}{}{{{}}} {}\n", name, counts ? "_total" : "", text, value);
  }

  std::string Text() const {
    std::string text;
    for (const auto& [name, family] : families_) {
      text += fmt::format("# TYPE {} {}\n", name, family.type);
      if (!family.unit.empty()) text += fmt::format("# UNIT {} {}\n", name, family.unit);
      text += fmt::format("# HELP {} {}\n", name, family.help) + family.samples;
    }
    return text + "# EOF\n";
  }

 private:
  struct Family {
    const char* type = "gauge";
    std::string unit, help, samples;
    std::set<std::string> seen;
  };

  static std::string Escaped(const std::string& text) {
    std::string out;
    for (const char c : Printable(text, true)) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  }

  std::map<std::string, Family> families_;
};

// Our unit as the end of a metric's name, in the words that Prometheus asks for; empty for a count.
std::string_view UnitOf(std::string_view ours) {
  constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"ratio", "ratio"},        {"bytes", "bytes"},     {"bytes/s", "bytes_per_second"},
      {"count/s", "per_second"}, {"W", "watts"},         {"J", "joules"},
      {"Hz", "hertz"},           {"celsius", "celsius"}, {"cores", "cores"}};
  for (const auto& [unit, theirs] : kUnits) {
    if (unit == ours) return theirs;
  }
  return "";
}

Labels With(Labels labels, std::initializer_list<std::pair<std::string, std::string>> more) {
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

void AddTraining(const std::string& name, const watch::LiveRun& run, Families& families) {
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

void AddVerdict(const std::string& name, const watch::Judgement& judgement, Families& families) {
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
size_t AddSeries(const std::string& name, const record::Stage& stage, size_t most, Families& families) {
  size_t added = 0, left_out = 0;
  for (const record::Series& series : stage.series) {
    const record::MetricInfo* info = KnownMetric(series.key);
    if (!info || series.readings.empty() || info->unit == "bitmask") continue;
    if (added == most) {
      ++left_out;
      continue;
    }
    ++added;
    const std::string unit(UnitOf(info->unit));
    std::string metric = "fullbore_" + series.key.name;
    if (!unit.empty() && !metric.ends_with("_" + unit)) metric += "_" + unit;
    Labels labels = {{"run", name}};
    labels.insert(labels.end(), series.key.labels.begin(), series.key.labels.end());
    families.Add(metric, "gauge", unit, "The newest reading; see docs/metrics.md.", labels,
                 series.readings.back().value);
  }
  return left_out;
}

}  // namespace

std::string MetricsPage(const watch::RunsFolder& folder, const MetricsLimits& limits) {
  Families families;
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
