// Turns one rank's trace into what a recording keeps of a rank.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "record/recording.h"
#include "timeline/device/shares.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

struct RankResult {
  record::RankInfo info;
  std::vector<record::Series> series;  // memory and counters that the trace carries
  std::vector<std::string> notes;      // for the report: how steps were found, what is unknown
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  ExposedTime comm_exposed;  // when nothing but communication ran
};

// `trace` is finished (DeviceTrace::Finish). The caller sets the number of the rank. The step whose timeline is kept is
// `shown`, if there is one of that number, else the one of the median time.
RankResult SummariseRank(const DeviceTrace& trace, std::optional<size_t> shown = std::nullopt);

}  // namespace fullbore::timeline
