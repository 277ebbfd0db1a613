// What each machine of a run on several did.
#pragma once

#include <string>
#include <vector>

#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Empty for a run on one machine.
std::vector<NodeSummary> NodesOf(const View& view);

// "136-143", "0-3,6".
std::string RangesOf(const std::vector<int>& ranks);

}  // namespace fullbore::diagnose
