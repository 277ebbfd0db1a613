// Deletes a recorded run: its file, or the folder of one on several machines, and what `run` wrote beside it: the report
// and the windows of the profiler. Nobody can make it delete anything else: directories are held open, links are not
// followed, and what is deleted is what was looked at. First it gets a name that nobody knows; only when that is still the
// file that was listed, of this user and unused, is it deleted; else it gets its own name back. Whoever deletes holds a
// lock on it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "watch/run_index.h"

namespace fullbore::watch {

// A run with this tag stays, whatever it says: `fullbore runs --pin RUN`.
inline constexpr char kPinTag[] = "keep";

// Why nobody may delete the run: "it is being recorded", "it is pinned". Empty where one may.
std::string WhyHeld(const KnownRun& run);

// `run`: as `directory` was listed. Returns how many bytes are free now. Fails where it has changed since, is held, is
// open in another program, belongs to another user, or is none of ours; then nothing was deleted.
Result<int64_t> RemoveRun(const std::string& directory, const KnownRun& run);

// Ends the removals in `directory` that were killed in the middle: what has such a name that nobody knows, is of this
// user and is being deleted by no process. Failing is no harm: the next one who lists runs does it.
void FinishRemovals(const std::string& directory);

}  // namespace fullbore::watch
