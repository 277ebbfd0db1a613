// What the stages of a fullbore.data loader did, from totals to readings: a line `loader_stages` of the
// channel holds sums since the loader was opened; its difference to the previous line gives the readings of
// the series in docs/metrics.md for the time between.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/metrics.h"
#include "record/run_writer.h"

namespace fullbore::collect {

class LoaderMeter {
 public:
  // A line may contain anything: what is not a total is left out.
  void OnTotals(const nlohmann::json& line);

  // Moves the readings since the last call into `writer`. Before a process trains, nobody asks for them; then
  // all of them are dropped when there are too many.
  void Drain(int rank, record::RunWriter& writer);

 private:
  struct Totals {
    int64_t t_ns = 0;
    std::map<std::string, nlohmann::json> stages;  // by name
    int64_t wait_ns = 0;
  };
  struct Reading {
    int64_t t_ns = 0;
    record::Metric metric{};
    record::Labels labels;  // but for the rank
    double value = 0;
  };

  void Add(int64_t t_ns, record::Metric metric, const record::Labels& labels, double value);
  void AddStage(const Totals& before, const Totals& now, const std::string& stage, record::Labels labels);

  std::map<int64_t, Totals> before_;  // by loader
  std::vector<Reading> readings_;
};

}  // namespace fullbore::collect
