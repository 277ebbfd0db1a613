// --on slurm: trials as jobs, with the flags of the command that asks for them.
#pragma once

#include "base/result.h"
#include "cli/trials.h"
#include "tune/measure.h"

namespace fullbore::cli {

// An error where --on names anything else than slurm, or a flag of it makes no sense without it.
Result<void> CheckPlace(const TrialFlags& flags);

// Measures one trial where --on says: here, or as a job; what happens to the job is said on standard error. Of a trial
// made elsewhere, `hopeless_below` is not looked at.
Result<tune::Measured> MeasureThere(const TrialFlags& flags, const tune::MeasureOptions& options,
                                    const tune::Settings& settings);

}  // namespace fullbore::cli
