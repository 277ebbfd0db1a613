// The directory of a run's channels is removed at the run's end. A recorder that was killed leaves it; the
// next one, or `fullbore runs`, clears it away.
#pragma once

#include <string>

#include "base/result.h"

namespace fullbore::collect {

// "<run>.channel.<pid>.<letters>" beside the run file, which only this user may enter, with a note in it of
// who records: several machines and containers may share a directory of runs.
Result<std::string> MakeChannelDirectory(const std::string& runs_directory, const std::string& run_id);

// Removes those of recorders and training processes that are surely dead. Returns how many were removed.
int RemoveLeftovers(const std::string& runs_directory);

}  // namespace fullbore::collect
