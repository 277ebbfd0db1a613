// Whether a trial of the script as it is runs as fast as a normal run: a trial writes to another place, which may take
// a different time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/recording.h"
#include "record/run_reader.h"

namespace fullbore::tune {

// Whether that run is a normal one of this command in this directory that ran to its end: it has no tags, so it is not
// a trial, and no signal but Ctrl-C ended it.
bool IsRunOf(const record::RunSummary& run, const std::vector<std::string>& command,
             const std::string& directory);

// If the steady rates of the trial and of the run differ by more than their uncertainty: a sentence that names the part
// of the step where they differ. Nothing if they agree, or if one of them is unknown.
std::optional<std::string> DifferenceFromRun(const record::Recording& run, const record::Recording& trial);

}  // namespace fullbore::tune
