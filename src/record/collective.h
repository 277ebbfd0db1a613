// How fast a collective was: the two bandwidths of NVIDIA's nccl-tests.
#pragma once

#include <optional>

#include "record/recording.h"

namespace fullbore::record {

// Bytes a second of those calls whose size is known. Time that they spent waiting for the last rank to arrive
// is left out where it is known: nothing was transferred in it, and nccl-tests measures ranks that start
// together.
std::optional<double> AlgorithmBandwidth(const CollectiveStats& stats);

// What of it crosses the narrowest link, comparable with the hardware's figure whatever the number of ranks.
// Nothing where the kind or the size of the group is unknown.
std::optional<double> BusBandwidth(const CollectiveStats& stats);

}  // namespace fullbore::record
