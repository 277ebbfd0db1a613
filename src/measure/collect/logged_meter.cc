#include "measure/collect/logged_meter.h"

#include <utility>

#include "record/metrics.h"

namespace fullbore::collect {

namespace {

using nlohmann::json;

constexpr size_t kMaxWaiting = 100'000;
constexpr int64_t kLargestStep = int64_t{1} << 53;  // that a double tells from its neighbours
// After the groups of the loaders: metrics are logged at times of their own, so each has a group.
constexpr int kFirstGroup = 1'000'000;

std::optional<int64_t> StepOf(const json& point) {
  if (point.size() < 4 || !point[3].is_number_integer()) return std::nullopt;
  const auto step = point[3].get<int64_t>();
  return step < 0 || step > kLargestStep ? std::nullopt : std::optional(step);
}

}  // namespace

LoggedMeter::Metric* LoggedMeter::MetricNamed(const std::string& name) {
  const auto known = metrics_.find(name);
  if (known != metrics_.end()) return &known->second;
  if (metrics_.size() == kMostMetrics || name.empty() || name.size() > kMostNameBytes) return nullptr;
  const int number = static_cast<int>(metrics_.size());
  return &metrics_.emplace(name, Metric{number, {}}).first->second;
}

// A point is [name, time, value, step or null].
void LoggedMeter::AddPoint(const json& point, int64_t latest_ns) {
  if (!point.is_array() || point.size() < 3) return;
  if (!point[0].is_string() || !point[1].is_number_integer() || !point[2].is_number()) return;
  const auto t_ns = point[1].get<int64_t>();
  if (t_ns <= 0 || t_ns > latest_ns) return;
  Metric* const metric = MetricNamed(point[0].get<std::string>());
  if (!metric || (!metric->points.empty() && metric->points.back().t_ns >= t_ns)) return;
  metric->points.push_back({t_ns, point[2].get<double>(), StepOf(point)});
  ++waiting_;
}

void LoggedMeter::OnPoints(const json& line) {
  const auto at = line.find("t"), points = line.find("points");
  if (at == line.end() || !at->is_number_integer() || points == line.end() || !points->is_array()) return;
  if (waiting_ > kMaxWaiting) {
    for (auto& [name, metric] : metrics_) metric.points.clear();
    waiting_ = 0;
  }
  for (const json& point : *points) AddPoint(point, at->get<int64_t>());
}

void LoggedMeter::Drain(int rank, record::RunWriter& writer) {
  if (waiting_ == 0) return;
  for (auto& [name, metric] : metrics_) {
    const record::Labels labels = {{"metric", name}, {"rank", std::to_string(rank)}};
    const record::SeriesKey value = KeyOf(record::Metric::kLogged, labels),
                            step = KeyOf(record::Metric::kLoggedStep, labels);
    const int group = kFirstGroup + rank * static_cast<int>(kMostMetrics) + metric.number;
    for (const Point& point : std::exchange(metric.points, {})) {
      writer.AppendReading(group, value, point.t_ns, point.value);
      if (point.step) writer.AppendReading(group, step, point.t_ns, static_cast<double>(*point.step));
    }
  }
  waiting_ = 0;
}

}  // namespace fullbore::collect
