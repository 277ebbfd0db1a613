// Where the time of a trace's host threads went, as a tree to draw as a flame graph: calls within calls, those of one name
// within the same caller as one. Python functions are among them where the trace has stacks.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "explain/analyze/rank_trace.h"

namespace fullbore::analyze {

struct HostStack {
  std::string name;
  int64_t ns = 0, self_ns = 0;   // self: in none of the calls within, drawn or not
  std::vector<HostStack> calls;  // the longest first; what is too short to be drawn is left out
};

// The root is the rank; its calls are the threads.
HostStack HostStacks(const RankTrace& rank);

nlohmann::ordered_json ToJson(const HostStack& stack);  // [name, ns, self_ns, [calls]]

}  // namespace fullbore::analyze
