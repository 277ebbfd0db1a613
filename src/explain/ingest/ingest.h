// Turns recordings of other tools into a record::Recording: PyTorch-profiler traces (Kineto JSON, plain or
// compressed, also inside archives) and Nsight Systems sqlite exports. Several files are the ranks of one run.
//
//   auto recording = ingest::ReadTraces({"traces/"}, {});
//
// A truncated file is read as far as it goes; what had to be left out is counted in Stage::messages. An error
// names the file and the byte.
//
// Files are read one after the other, and memory does not grow with the events of all: of each rank its sums stay, in
// full only those of a few ranks (gathered_ranks.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/recording.h"
#include "timeline/device/trace.h"

namespace fullbore::ingest {

struct TraceOptions {
  bool stacks = false;  // keep every Python function of traces with stacks: more memory, more precise places
  // Called every few megabytes of a file, from the calling thread.
  std::function<void(const std::string& file, int64_t position, int64_t size)> progress;
  // Called for each trace before it is processed, to cut it (--like-hta); of many ranks for some traces twice.
  std::function<void(timeline::DeviceTrace& trace)> cut;
  // Called once for each trace after that, to take figures from it.
  std::function<void(const timeline::DeviceTrace& trace)> look;
};

// `paths`: files and directories (every file in them is examined; those that are not traces are counted).
Result<record::Recording> ReadTraces(const std::vector<std::string>& paths, const TraceOptions& options = {});

// Visits the same traces one after the other, in full, for what needs individual events (exports, sections).
// A trace is valid only during the call. Its rank is set; messages are what ReadTraces would put into the
// stage.
using TraceVisitor = std::function<void(timeline::DeviceTrace& trace, const std::string& file)>;
Result<std::vector<record::Message>> VisitTraces(const std::vector<std::string>& paths,
                                                 const TraceOptions& options, const TraceVisitor& visit);

}  // namespace fullbore::ingest
