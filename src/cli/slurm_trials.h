// --on slurm: trials as jobs, with the flags of the command that asks for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/trials.h"
#include "tune/slurm.h"

namespace fullbore::cli {

// One trial to measure elsewhere.
struct RemoteTrial {
  tune::Settings settings;
  std::string precision, most;  // as --precision and --most take them
};

struct RemoteTrials {
  std::vector<tune::Trial> trials;    // as they were asked for; empty if interrupted
  std::optional<int> interrupted_by;  // a signal for us: what had not ended is cancelled
};

// An error where --on names anything else than slurm, or a flag of it makes no sense without it.
Result<void> CheckPlace(const TrialFlags& flags);

// Says on standard error what happens to the jobs.
Result<RemoteTrials> MeasureElsewhere(const TrialFlags& flags, const std::vector<std::string>& command,
                                      const std::vector<RemoteTrial>& trials);

}  // namespace fullbore::cli
