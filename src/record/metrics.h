// What a series can measure: the contract between those who record (probes, the loader's meter) and those who
// read (diagnosis, reports). Both name a metric by its enumerator, so that a misspelt name does not compile.
// The table is metrics.inc; docs/metrics.md documents it, and a test keeps the two in step.
//
// A run file stores names, and may hold some that this table lacks, from an older or a newer version. These
// keep their names in the recording, and no finding asks for them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "record/recording.h"

namespace fullbore::record {

enum class Metric : uint8_t {
#define METRIC(identifier, ...) identifier,
#include "record/metrics.inc"
#undef METRIC
};

enum class Rate : uint8_t { kFast, kSlow };  // 5 readings per second, 1 per second

struct MetricInfo {
  Metric metric;
  std::string_view name;  // as stored
  std::string_view unit;
  double resolution;  // the step in which values are stored: it decides the size of the run file
  Rate rate;
  std::string_view labels;   // as in the document: "gpu", "role, rank"; "" for none
  std::string_view source;   // "proc", "cgroup", "loader", "nvml": what evidence names
  std::string_view meaning;  // where it comes from and what it measures
};

std::span<const MetricInfo> AllMetrics();  // in the order of the enumerators

const MetricInfo& InfoOf(Metric metric);
std::string_view Name(Metric metric);

SeriesKey KeyOf(Metric metric, Labels labels = {});

// "disk_read{device=vda}": how reports and evidence name a series.
std::string LabelledName(const SeriesKey& key);

inline bool IsOf(const SeriesKey& key, Metric metric) { return key.name == Name(metric); }

}  // namespace fullbore::record
