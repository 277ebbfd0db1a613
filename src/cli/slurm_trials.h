// --on slurm: trials as jobs, with the flags of the command that asks for them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "cli/trials.h"
#include "tune/trial/measure.h"

namespace fullbore::cli {

// An error where --on names anything else than slurm, or a flag of it makes no sense without it.
Result<void> CheckPlace(const TrialFlags& flags);

// Several trials as jobs, at most --jobs at a time; `measured` receives each as soon as it is known. The signal that asked
// this process to end, if one did; jobs that had not ended then are cancelled, as where options.given_up says so.
Result<std::optional<int>> MeasureOnCluster(const TrialFlags& flags, const tune::MeasureOptions& options,
                                            const std::vector<tune::Settings>& settings,
                                            const std::function<void(size_t, const tune::Trial&)>& measured);

// Measures one trial where --on says: here, or as a job; what happens to the job is said on standard error. Of a trial
// made elsewhere, `hopeless_below` is not looked at.
Result<tune::Measured> MeasureThere(const TrialFlags& flags, const tune::MeasureOptions& options,
                                    const tune::Settings& settings);

}  // namespace fullbore::cli
