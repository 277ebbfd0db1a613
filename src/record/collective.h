// How fast a collective was: the two bandwidths that NVIDIA's nccl-tests report.
#pragma once

#include <optional>

#include "record/recording.h"

namespace fullbore::record {

// Bytes per second over the calls whose size is known. Time spent waiting for the last rank to arrive is
// subtracted where known: nothing was transferred then, and nccl-tests measures ranks that start together.
std::optional<double> AlgorithmBandwidth(const CollectiveStats& stats);

// The share of it that crosses the narrowest link, comparable with the hardware's figure for any number of
// ranks. Nothing if the kind or the size of the group is unknown.
std::optional<double> BusBandwidth(const CollectiveStats& stats);

}  // namespace fullbore::record
