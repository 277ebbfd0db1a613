// `fullbore explain --pid`: records a process that already runs, with a line that says how far it is.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace fullbore::cli {

struct PidFlags {
  int64_t pid = 0;
  std::string seconds;    // "30s", "2m"; empty for the default
  std::string directory;  // of runs
  bool quiet = false;
};

// The path of the run file. SIGINT and SIGTERM end the sampling early, and what there is is kept.
Result<std::string> RecordPid(const PidFlags& flags);

}  // namespace fullbore::cli
