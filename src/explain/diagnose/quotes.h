// One number for each change in a report: finding, ladder and --what-if quote the same prediction.
#pragma once

#include <string>
#include <vector>

#include "explain/diagnose/diagnosis.h"

namespace fullbore::diagnose {

// Where several findings quote one change, only the one that costs most promises its gain: the others, which may
// promise no more than their own removal, would give it another number.
void KeepOneGainOfEach(std::vector<Finding>& findings);

// The changes whose gain is sure in the recorded steps, but which findings quoted and took back: not worth it, or
// nothing may be predicted. No ladder begins with them; given others, they may be sure.
std::vector<std::string> TakenBack(const std::vector<Finding>& findings);

// The first rung stands alone against the recorded steps, as a finding's prediction does: it takes over its number, and
// the rungs behind it go on from there.
void QuoteFindings(const std::vector<Finding>& findings, std::vector<Rung>& rungs);

}  // namespace fullbore::diagnose
