#include "explain/diagnose/logged.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>

#include "base/text.h"
#include "record/json_text.h"
#include "record/metrics.h"

namespace fullbore::diagnose {

namespace {

using record::Metric;

constexpr size_t kMostPoints = 1000;  // of more, neighbours are averaged

std::string LabelOf(const record::Series& series, const char* label) {
  const auto at = series.key.labels.find(label);
  return at == series.key.labels.end() ? "" : at->second;
}

int RankOf(const record::Series& series) {
  return static_cast<int>(ParseInt(LabelOf(series, "rank")).value_or(0));
}

const record::RankInfo* RankNumbered(const record::Stage& stage, int number) {
  const auto rank = std::ranges::find(stage.ranks, number, &record::RankInfo::rank);
  return rank == stage.ranks.end() ? nullptr : &*rank;
}

// The training's step at that moment, where the script gives none.
int64_t StepAt(const record::RankInfo& rank, int64_t t_ns) {
  const auto after = std::ranges::upper_bound(rank.windows, t_ns, {}, &record::StepWindow::begin_ns);
  if (after == rank.windows.begin()) return 0;
  const record::StepWindow& window = *std::prev(after);
  const auto span_ns = static_cast<double>(std::max<int64_t>(1, window.end_ns - window.begin_ns));
  const double part = std::min(1.0, static_cast<double>(t_ns - window.begin_ns) / span_ns);
  return window.first_step + std::llround(part * static_cast<double>(window.steps));
}

class StepsOf {
 public:
  StepsOf(const record::Stage& stage, const record::Series& series)
      : rank_(RankNumbered(stage, RankOf(series))) {
    for (const record::Series& each : stage.series) {
      if (!IsOf(each.key, Metric::kLoggedStep) || each.key.labels != series.key.labels) continue;
      for (const record::Reading& step : each.readings) given_[step.t_ns] = std::llround(step.value);
    }
  }

  int64_t At(int64_t t_ns) const {
    const auto given = given_.find(t_ns);
    if (given != given_.end()) return given->second;
    return rank_ ? StepAt(*rank_, t_ns) : 0;
  }

 private:
  const record::RankInfo* rank_;
  std::map<int64_t, int64_t> given_;  // by time
};

// At most kMostPoints; each of more is the mean of neighbours, where and when the last of them was.
std::vector<LoggedPoint> PointsOf(const record::Stage& stage, const record::Series& series) {
  const StepsOf steps(stage, series);
  const size_t together = (series.readings.size() + kMostPoints - 1) / kMostPoints;
  std::vector<LoggedPoint> points;
  double sum = 0;
  size_t count = 0;
  for (const record::Reading& reading : series.readings) {
    sum += reading.value;
    if (++count < together && &reading != &series.readings.back()) continue;
    points.push_back({reading.t_ns, steps.At(reading.t_ns), sum / static_cast<double>(count)});
    sum = 0;
    count = 0;
  }
  return points;
}

// What the hook says of the rank's metrics, by their names.
nlohmann::json SaidOf(const record::RankInfo* rank) {
  if (!rank || !rank->facts.contains(kLoggedFact)) return nlohmann::json::object();
  nlohmann::json said = record::ParseJson(rank->facts.at(kLoggedFact));
  return said.is_object() ? said : nlohmann::json::object();
}

std::vector<std::string> LoggersIn(const nlohmann::json& said) {
  std::vector<std::string> loggers;
  if (!said.is_object() || !said.contains("loggers") || !said["loggers"].is_array()) return loggers;
  for (const nlohmann::json& logger : said["loggers"]) {
    if (logger.is_string()) loggers.push_back(logger.get<std::string>());
  }
  return loggers;
}

void AddWhatIsSaid(const nlohmann::json& said, LoggedMetric& metric) {
  const auto count = [&](const char* key) {
    const double number = record::NumberIn(said, key);
    return number > 0 && number < 1e15 ? static_cast<int64_t>(number) : 0;
  };
  metric.loggers = LoggersIn(said);
  metric.thinned = count("thinned");
  metric.not_finite = count("not_finite");
  metric.on_device = count("on_device");
}

LoggedMetric MetricOf(const record::Stage& stage, const record::Series& series) {
  LoggedMetric metric;
  metric.name = LabelOf(series, "metric");
  metric.rank = RankOf(series);
  metric.values = static_cast<int64_t>(series.readings.size());
  metric.first = series.readings.front().value;
  metric.last = series.readings.back().value;
  metric.points = PointsOf(stage, series);
  if (const nlohmann::json said = SaidOf(RankNumbered(stage, metric.rank)); said.contains(metric.name))
    AddWhatIsSaid(said[metric.name], metric);
  return metric;
}

// Those of which no value could be kept: it is worth knowing why.
void AddUnread(const record::RankInfo& rank, std::vector<LoggedMetric>& metrics) {
  const nlohmann::json all = SaidOf(&rank);
  for (const auto& [name, said] : all.items()) {
    LoggedMetric metric;
    metric.name = name;
    metric.rank = rank.rank;
    AddWhatIsSaid(said, metric);
    const bool is_new = std::ranges::find(metrics, name, &LoggedMetric::name) == metrics.end();
    if (is_new && metric.not_finite + metric.on_device > 0) metrics.push_back(std::move(metric));
  }
}

bool IsLoss(std::string_view name) { return name.find("loss") != std::string_view::npos; }

const LoggedMetric* MetricNamed(const Diagnosis& run, const std::string& name) {
  const auto metric = std::ranges::find(run.logged, name, &LoggedMetric::name);
  return metric == run.logged.end() || metric->points.empty() ? nullptr : &*metric;
}

int64_t LastStep(const LoggedMetric& metric) {
  if (metric.points.empty()) return 0;
  return std::ranges::max(metric.points, {}, &LoggedPoint::step).step;
}

}  // namespace

std::vector<std::string> MetricsGivenTo(std::string_view logger, const record::RankInfo& rank) {
  std::vector<std::string> metrics;
  const nlohmann::json all = SaidOf(&rank);
  for (const auto& [name, said] : all.items()) {
    const std::vector<std::string> loggers = LoggersIn(said);
    if (std::ranges::find(loggers, logger) != loggers.end()) metrics.push_back(name);
  }
  return metrics;
}

std::vector<LoggedMetric> LoggedOf(const record::Stage& stage) {
  std::map<std::string, const record::Series*> lowest;
  for (const record::Series& series : stage.series) {
    if (!IsOf(series.key, Metric::kLogged) || series.readings.empty()) continue;
    const record::Series*& of = lowest[LabelOf(series, "metric")];
    if (!of || RankOf(series) < RankOf(*of)) of = &series;
  }
  std::vector<LoggedMetric> metrics;
  for (const auto& [name, series] : lowest) metrics.push_back(MetricOf(stage, *series));
  for (const record::RankInfo& rank : stage.ranks) AddUnread(rank, metrics);
  std::ranges::stable_sort(metrics, {}, [](const LoggedMetric& metric) { return !IsLoss(metric.name); });
  return metrics;
}

std::optional<double> LevelAt(const LoggedMetric& metric, int64_t step) {
  const int64_t from = step - step / 20;
  double sum = 0;
  int64_t count = 0;
  const LoggedPoint* before = nullptr;
  for (const LoggedPoint& point : metric.points) {
    if (point.step > step) continue;
    if (!before || point.step >= before->step) before = &point;
    if (point.step <= from && point.step != step) continue;
    sum += point.value;
    ++count;
  }
  if (count > 0) return sum / static_cast<double>(count);
  return before ? std::optional(before->value) : std::nullopt;
}

std::string LoggedText(std::optional<double> value) { return value ? fmt::format("{:.4g}", *value) : ""; }

std::string LoggedTogether::WhereText() const {
  return fmt::format("{} at step {}", metric, FormatCount(static_cast<double>(step)));
}

std::vector<LoggedTogether> Together(const std::vector<const Diagnosis*>& runs) {
  std::vector<LoggedTogether> all;
  for (const LoggedMetric& first : runs.front()->logged) {
    if (first.points.empty()) continue;
    LoggedTogether together{first.name, LastStep(first), {}, {}};
    std::vector<const LoggedMetric*> metrics;
    for (const Diagnosis* run : runs) {
      metrics.push_back(MetricNamed(*run, first.name));
      if (metrics.back()) together.step = std::min(together.step, LastStep(*metrics.back()));
    }
    if (std::ranges::count(metrics, nullptr) + 1 >= std::ssize(runs)) continue;
    for (const LoggedMetric* metric : metrics) {
      together.there.push_back(metric ? LevelAt(*metric, together.step) : std::nullopt);
      together.at_end.push_back(metric ? LevelAt(*metric, LastStep(*metric)) : std::nullopt);
    }
    all.push_back(std::move(together));
  }
  return all;
}

}  // namespace fullbore::diagnose
