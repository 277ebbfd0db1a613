// The windows of a run as traces, and what they add to its reports.
#pragma once

#include "base/result.h"
#include "record/recording.h"

namespace fullbore::cli {

// The newest windows of a stage's ranks as one recording. An error names what could not be read.
Result<record::Recording> ReadDeviceWindows(const record::Stage& stage);

// Gives the ranks of a run what their windows saw of the CPU's operators, which the diagnosis of the run is to judge.
void TakeOperatorsOf(const record::Recording& trace, record::Stage& run);

// Gives the ranks of a run what their page shows of a device: tables, roofline, the step to look at.
void TakeTablesOf(const record::Recording& trace, record::Stage& run);

}  // namespace fullbore::cli
