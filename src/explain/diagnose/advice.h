// What is advised, and in which order: nothing that is not sure to gain, and first what gains most for sure.
#pragma once

#include <vector>

#include "explain/diagnose/diagnosis.h"

namespace fullbore::diagnose {

// Whether a change is worth making for its gain alone: it gains even at the low end, and is expected to gain
// enough to be felt.
bool IsWorthwhile(const Speedup& speedup);

// Promises nothing: what was measured and what can be done about it stay.
void DropGain(Finding& finding);

// Takes back the advice of a finding that is real but not worth acting on: what was measured stays, its change
// and its gain go, and its fix says in words that nothing here is sure to gain, and what else might.
void Withdraw(Finding& finding);

// Orders findings by the gain that is sure, and then by severity and share; what stands still comes first. Withdraws a change that may slow the run
// down, and the first finding's if it is not worthwhile; nothing is promised of what may gain nothing.
void RankByGain(std::vector<Finding>& findings);

}  // namespace fullbore::diagnose
