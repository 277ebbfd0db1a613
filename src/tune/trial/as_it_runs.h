// Whether a trial of the script as it is goes as fast as the run itself: what a trial writes goes elsewhere, and may cost
// another time there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/recording.h"
#include "record/run_reader.h"

namespace fullbore::tune {

// Whether that run is one of the command in this directory that came to its own end, no trial of it: it has no tags, and was
// not ended by a signal but for Ctrl-C.
bool IsRunOf(const record::RunSummary& run, const std::vector<std::string>& command,
             const std::string& directory);

// In a sentence, where the steady rate of the trial differs from that of the run by more than both are unsure of, which
// part of the step it is. Nothing where they agree, or one of them is not known.
std::optional<std::string> DifferenceFromRun(const record::Recording& run, const record::Recording& trial);

}  // namespace fullbore::tune
