// Reads a run: one file, or a folder of one for each machine (run_of_nodes.h); finished, still being written, or cut
// off. What cannot be read is left out, and a message in the recording says so; only what is no run at all is an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/recording.h"

namespace fullbore::record {

inline constexpr std::string_view kRunSuffix = ".fbr";  // of a run file, after the run's id

Result<Recording> ReadRun(const std::string& path);

// Only what ended in the last `window_ns` before the end of the newest stage: that stage alone, with its readings,
// steps and windows cut to then, and without the traces of profilers. What a rank or a loader has counted stays
// counted from the start. Blocks from before are skipped unread, so that beside the copy that a live run is read from
// (snapshot.h) this costs little however long the run is.
Result<Recording> ReadEndOfRun(const std::string& path, int64_t window_ns);

// What a list of runs shows, read without the bulk of the file.
struct RunSummary {
  std::string id;
  std::string path;
  std::map<std::string, std::string> tags;
  std::map<std::string, std::string> machine;  // as Recording::machine; of several, the first file's by name
  std::string note;                            // that a person wrote about it
  int64_t wall_begin_ns = 0;
  std::vector<Stage> stages;  // without ranks and series
  int64_t steps = 0;
  int64_t bytes = 0;
};

Result<RunSummary> ReadRunSummary(const std::string& path);

}  // namespace fullbore::record
