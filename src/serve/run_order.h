// In which order a list shows runs, for the page of all runs and for `fullbore runs`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "watch/run_index.h"

namespace fullbore::serve {

using NamedRun = std::pair<std::string, const watch::KnownRun*>;

inline constexpr char kOrders[] = "begin, duration, steps, throughput, waste or name; -begin is newest first";

int64_t DurationNs(const watch::KnownRun& run);
double WasteOf(
    const watch::KnownRun& run);  // the part of its time that the first finding's fix would have saved

// By one of kOrders; a minus before it turns it around. False where it names nothing.
bool SortRuns(std::vector<NamedRun>& runs, std::string by);

}  // namespace fullbore::serve
