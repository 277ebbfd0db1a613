// A run on several machines: a folder RUN.fbr that holds a run file of each of them, NODE.fbr. It is read as one
// recording, that of the machine with the lowest rank, to which the ranks of all others are added:
//   - times are on the first machine's clock: by the clocks of the wall, then by the steps, where they end everywhere
//     at once;
//   - stages are the same where they have the same name, and go on until the last machine's ends;
//   - files NODE-taskN.fbr are of one machine, whose tasks were recorded apart;
//   - of a machine that is not the first, series are kept as means (record::Node), and of its ranks fewer steps and
//     windows, the same ones of each: a thousand ranks then take less than two hundred megabytes;
//   - a file that cannot be read is left out, and a message says so.
#pragma once

#include <string>

#include "base/result.h"
#include "record/recording.h"
#include "record/run_reader.h"

namespace fullbore::record {

// Whether this is the folder of a run on several machines, by its name.
bool IsRunOfNodes(const std::string& path);
bool HoldsNothing(
    const std::string& folder);  // the command could not be started there, and left only the folder

// Reads one file of such a folder; ReadRun or ReadEndOfRun.
using ReadNode = Result<Recording> (*)(const std::string& path, int64_t window_ns);
Result<Recording> ReadRunOfNodes(const std::string& folder, ReadNode read, int64_t window_ns);

// Tags and the note are those of the first file by name.
Result<RunSummary> ReadSummaryOfNodes(const std::string& folder);
Result<std::string> FileWithTagsOf(const std::string& folder);

}  // namespace fullbore::record
