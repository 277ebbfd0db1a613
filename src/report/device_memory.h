// What is said of a device's memory, in the terminal and on the page.
#pragma once

#include <map>
#include <string>

#include "explain/diagnose/diagnosis.h"

namespace fullbore::report {

// The parts of the device's memory by their names, as ratios of it.
std::map<std::string, double> MemoryShares(const diagnose::MemoryBudget& budget);

// "71 GB of 86 GB", and on several ranks whose.
std::string MemoryTitle(const diagnose::Diagnosis& diagnosis);

// "46 MB", "46 MB (exp_avg 23 MB, exp_avg_sq 23 MB)"; types where there are several.
std::string MemoryPartText(const diagnose::MemoryPart& part);

// "fits", "does not fit", "may not fit".
std::string_view FitText(const diagnose::MemoryWhatIf& answer);

// One sentence: what another batch would take, or why that is not known.
std::string MemoryWhatIfText(const diagnose::MemoryWhatIf& answer);

}  // namespace fullbore::report
