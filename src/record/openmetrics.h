// OpenMetrics text for Prometheus and whatever else scrapes, and the names of our series in it. Who answers `/metrics`
// writes with this: `serve` about runs, `agent` about a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record/metrics.h"

namespace fullbore::record {

inline constexpr char kOpenMetrics[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

class OpenMetrics {
 public:
  using LabelList = std::vector<std::pair<std::string, std::string>>;

  // Beyond `most_samples` what is added is only counted: add first what must not be left out.
  explicit OpenMetrics(size_t most_samples = SIZE_MAX) : most_samples_(most_samples) {}

  // A sample of the family `name`, which is of one `type` ("gauge", "counter", "info") and ends in `unit` where it has
  // one. Values of labels may hold anything. A value that is no number, and the same labels twice, are left out.
  void Add(const std::string& name, const char* type, const std::string& unit, const char* help,
           const LabelList& labels, double value);
  void AddGauge(const std::string& name, const std::string& unit, const char* help, const LabelList& labels,
                double value) {
    Add(name, "gauge", unit, help, labels, value);
  }

  // A gauge of how many were left out, which is never left out itself.
  void AddCut(const std::string& name, const char* help);

  size_t samples() const { return samples_; }
  size_t cut() const { return cut_; }
  std::string Text() const;

 private:
  // A family's samples must follow one another, whatever they are of.
  struct Family {
    const char* type = "gauge";
    std::string unit, help, samples;
    std::set<std::string> seen;
  };

  size_t most_samples_;
  size_t samples_ = 0, cut_ = 0;
  std::map<std::string, Family> families_;
};

// Our unit as the end of a metric's name, in the words that Prometheus asks for; empty for a count.
std::string_view PrometheusUnit(std::string_view unit);

// "fullbore_gpu_power_watts" of "gpu_power".
std::string PrometheusName(const MetricInfo& metric);

}  // namespace fullbore::record
