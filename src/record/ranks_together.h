// Of how many ranks the graphs (step_graph.h) are run beside each other at most: more take longer and say little more.
// Who reads the traces of many ranks knows it, too, and keeps no more graphs than are run (timeline/device/kept_ranks.h).
#pragma once

#include <cstddef>

namespace fullbore::record {

inline constexpr size_t kMostRanksTogether = 8;

}  // namespace fullbore::record
