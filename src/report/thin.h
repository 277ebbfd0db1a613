// Thinning out for charts: a run may hold a million readings, a screen shows a thousand.
#pragma once

#include <vector>

#include "record/recording.h"

namespace fullbore::report {

// At most two readings for each of `buckets` equal intervals of time: its lowest and its highest, in order of
// time. So a spike of a single reading stays in the chart. A series that is short enough is returned as it
// is.
std::vector<record::Reading> Thin(const std::vector<record::Reading>& readings, size_t buckets);

// At most `most` windows: neighbours are summed, so times and samples stay exact.
std::vector<record::StepWindow> Merge(const std::vector<record::StepWindow>& windows, size_t most);

}  // namespace fullbore::report
