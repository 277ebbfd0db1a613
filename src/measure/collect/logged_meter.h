// What the script logs itself, from the lines `logged` of the channel to readings: each metric is a series of its own,
// and so are the numbers of its steps where the script gives them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "record/run_writer.h"

namespace fullbore::collect {

class LoggedMeter {
 public:
  // A line may contain anything: what is no point is left out, and so are metrics after the first kMostMetrics.
  void OnPoints(const nlohmann::json& line);

  // Moves the points since the last call into `writer`. Before a process trains, nobody asks for them; then all of
  // them are dropped when there are too many.
  void Drain(int rank, record::RunWriter& writer);

  static constexpr size_t kMostMetrics = 64, kMostNameBytes = 400;

 private:
  struct Point {
    int64_t t_ns = 0;
    double value = 0;
    std::optional<int64_t> step;
  };
  struct Metric {
    int number = 0;  // in the order in which they came
    std::vector<Point> points;
  };

  void AddPoint(const nlohmann::json& point, int64_t latest_ns);
  Metric* MetricNamed(const std::string& name);

  std::map<std::string, Metric> metrics_;  // by the script's names
  size_t waiting_ = 0;
};

}  // namespace fullbore::collect
