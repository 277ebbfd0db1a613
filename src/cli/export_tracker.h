// A recorded run to an experiment tracker, for `fullbore export RUN --to mlflow`; and while it is recorded, which is what
// `fullbore run --log` starts beside the command.
#pragma once

#include <string>
#include <vector>

#include "watch/track/tracker.h"

namespace fullbore::cli {

struct TrackerExport {
  std::vector<std::string> runs;  // one, as FindRun knows it
  std::string directory;
  std::string tracker;  // as watch::TrackerNamed reads it
  bool follow = false;  // until the run ends
};

// The exit status.
int ExportToTracker(const TrackerExport& wanted);

}  // namespace fullbore::cli
