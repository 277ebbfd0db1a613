// The table of all series that probes record. docs/metrics.md shows it to people, and a test holds the two
// together.
#pragma once

#include <span>
#include <string_view>

#include "measure/probe/probe.h"

namespace fullbore::probe {

struct Metric {
  std::string_view name;
  std::string_view unit;
  double resolution;  // the step in which values are stored: it decides the size of the run file
  Rate rate;
  std::string_view labels;  // as in the document: "gpu", "role, rank"; "" for none
};

std::span<const Metric> AllMetrics();

// The key of a series of that table; a name that is not in it is a bug.
record::SeriesKey KeyOf(std::string_view name, record::Labels labels = {});

}  // namespace fullbore::probe
