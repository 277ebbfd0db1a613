// The runs that are being recorded, as OpenMetrics text for Prometheus and whatever else scrapes. docs/serve.md lists
// the names.
#pragma once

#include <string>

#include "watch/runs_folder.h"

namespace fullbore::serve {

// What one answer holds at most; what is left out is counted in `fullbore_cut_runs` and `fullbore_cut_series`.
struct MetricsLimits {
  size_t runs = 50;
  size_t series_of_a_run = 400;
};

std::string MetricsPage(const watch::RunsFolder& folder, const MetricsLimits& limits = {});

}  // namespace fullbore::serve
