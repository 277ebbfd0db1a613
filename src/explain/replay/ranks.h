// Which ranks are run beside each other.
#pragma once

#include <vector>

#include "explain/replay/simulate.h"

namespace fullbore::replay {

// The graph first, then those of `others` that it meets in collectives: of many, the ones that are waited for most, for
// the others decide nothing. The graph alone where together they come out too far from what was recorded, as with
// clocks that drift.
std::vector<const record::StepGraph*> RanksAround(const record::StepGraph& graph,
                                                  const std::vector<const record::StepGraph*>& others);

}  // namespace fullbore::replay
