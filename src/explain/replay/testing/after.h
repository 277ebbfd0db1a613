// What a step takes after a change, without what else a prediction makes of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "explain/replay/change/change.h"
#include "explain/replay/simulate.h"

namespace fullbore::replay::testing {

// Microseconds. The change has to apply.
inline double AfterUs(const record::StepGraph& graph, const Change* change,
                      Outlook outlook = Outlook::kExpected) {
  record::StepGraph changed = graph;
  EXPECT_EQ(change->WhyNot(graph), std::nullopt);
  const double floor_ns = change->Apply(outlook, changed);
  return std::max(floor_ns, StepNs(changed)) / 1e3;
}

}  // namespace fullbore::replay::testing
