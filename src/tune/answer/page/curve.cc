#include "tune/answer/page/curve.h"

#include <algorithm>
#include <set>

namespace fullbore::tune {

namespace {

// A placeholder may have any name: {batch}, {global_batch_size}, {loader_workers}.
bool IsBatch(const std::string& name) { return name.find("batch") != std::string::npos || name == "bs"; }
bool IsWorkers(const std::string& name) { return name.find("workers") != std::string::npos; }

std::optional<double> ValueOf(const Trial& trial, const std::string& name, const Known& known) {
  const auto at = trial.settings.find(name);
  if (at != trial.settings.end())
    return at->second.is_number() ? std::optional(at->second.get<double>()) : std::nullopt;
  const auto own = known.Own(name);
  return own ? std::optional(static_cast<double>(*own)) : std::nullopt;
}

// Of the settings of this kind, the one with the most values; none where each has one.
std::string MostVaried(std::span<const Trial> trials, const Known& known,
                       bool (*is_of_kind)(const std::string&)) {
  std::set<std::string> names;
  for (const Trial& trial : trials) {
    for (const auto& [name, value] : trial.settings) {
      if (is_of_kind(name)) names.insert(name);
    }
  }
  std::string most_varied;
  size_t most = 1;
  for (const std::string& name : names) {
    std::set<double> values;
    for (const Trial& trial : trials) {
      if (const auto value = ValueOf(trial, name, known)) values.insert(*value);
    }
    if (values.size() > most) {
      most = values.size();
      most_varied = name;
    }
  }
  return most_varied;
}

Curve::Line& LineOf(Curve& curve, const std::string& others) {
  const auto found = std::find_if(curve.lines.begin(), curve.lines.end(),
                                  [&](const Curve::Line& line) { return line.others == others; });
  return found != curve.lines.end() ? *found : curve.lines.emplace_back(Curve::Line{others, {}});
}

}  // namespace

std::optional<Curve> CurveOf(std::span<const Trial> trials, const Known& known) {
  Curve curve;
  curve.name = MostVaried(trials, known, IsBatch);
  curve.doubling = !curve.name.empty();
  if (curve.name.empty()) curve.name = MostVaried(trials, known, IsWorkers);
  if (curve.name.empty()) return std::nullopt;
  for (size_t i = 0; i < trials.size(); ++i) {
    const auto x = ValueOf(trials[i], curve.name, known);
    if (!x || (curve.doubling && *x <= 0)) continue;
    Settings others = trials[i].settings;
    others.erase(curve.name);
    LineOf(curve, others.empty() ? "" : ToText(others)).points.push_back({*x, i});
  }
  for (Curve::Line& line : curve.lines) {
    std::stable_sort(line.points.begin(), line.points.end(),
                     [](const Curve::Point& a, const Curve::Point& b) { return a.x < b.x; });
  }
  return curve;
}

}  // namespace fullbore::tune
