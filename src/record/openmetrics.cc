#include "record/openmetrics.h"

#include <fmt/format.h>

#include <cmath>

#include "base/printable.h"

namespace fullbore::record {

namespace {

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : Printable(text, true)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// What follows a family's name in that of its samples.
const char* SuffixOf(std::string_view type) {
  return type == "counter" ? "_total" : type == "info" ? "_info" : "";
}

}  // namespace

void OpenMetrics::Add(const std::string& name, const char* type, const std::string& unit, const char* help,
                      const LabelList& labels, double value) {
  if (!std::isfinite(value)) return;
  if (samples_ == most_samples_) {
    ++cut_;
    return;
  }
  Family& family = families_[name];
  family.type = type;
  family.unit = unit;
  if (family.help.empty()) family.help = help;
  std::string text;
  for (const auto& [key, of] : labels)
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", key, Escaped(of));
  // The same labels twice would make the whole answer invalid.
  if (!family.seen.insert(text).second) return;
  ++samples_;
  family.samples += fmt::format("{}{}{{{}}} {}\n", name, SuffixOf(type), text, value);
}

void OpenMetrics::AddCut(const std::string& name, const char* help) {
  most_samples_ = SIZE_MAX;
  AddGauge(name, "", help, {}, static_cast<double>(cut_));
}

std::string OpenMetrics::Text() const {
  std::string text;
  for (const auto& [name, family] : families_) {
    text += fmt::format("# TYPE {} {}\n", name, family.type);
    if (!family.unit.empty()) text += fmt::format("# UNIT {} {}\n", name, family.unit);
    text += fmt::format("# HELP {} {}\n", name, family.help) + family.samples;
  }
  return text + "# EOF\n";
}

std::string_view PrometheusUnit(std::string_view unit) {
  constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"ratio", "ratio"},        {"bytes", "bytes"},     {"bytes/s", "bytes_per_second"},
      {"count/s", "per_second"}, {"W", "watts"},         {"J", "joules"},
      {"Hz", "hertz"},           {"celsius", "celsius"}, {"cores", "cores"}};
  for (const auto& [ours, theirs] : kUnits) {
    if (ours == unit) return theirs;
  }
  return "";
}

std::string PrometheusName(const MetricInfo& metric) {
  const std::string unit(PrometheusUnit(metric.unit));
  const std::string name = "fullbore_" + std::string(metric.name);
  return unit.empty() || name.ends_with("_" + unit) ? name : name + "_" + unit;
}

}  // namespace fullbore::record
