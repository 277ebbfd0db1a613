// Figures as Holistic Trace Analysis (0.6) counts them, for those who compare: its window leaves out what is
// launched in the last ProfilerStep, and it rounds begins up and ends down to whole microseconds, which loses
// short kernels. Our own figures do neither.
#pragma once

#include <cstdint>
#include <optional>

#include "timeline/device_trace.h"

namespace fullbore::timeline {

struct HtaBreakdown {
  int64_t kernel_time_ns = 0;                // from the first begin to the last end
  int64_t idle_ns = 0;                       // of that, no device activity
  int64_t compute_ns = 0;                    // the union of computation kernels
  int64_t non_compute_ns = 0;                // the rest
  std::optional<double> comm_overlap_ratio;  // of the collectives' union, under computation
};

HtaBreakdown BreakDownLikeHta(const DeviceTrace& trace);

}  // namespace fullbore::timeline
