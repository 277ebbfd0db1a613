// Makes a trace what Holistic Trace Analysis takes it for, so that figures can be compared with its:
//   - of a trace with several ProfilerSteps, only the operations launched before the last of them began;
//   - times in whole microseconds, begins up and ends down, where the trace has fractions (which loses up to
//     18 % of the time of short kernels: for comparison only);
//   - its classes of kernels: `^nccl.*Kernel`, `^Memcpy|^Memset|^dma`, neither where another name has Memcpy
//   or
//     Sync in it, else computation.
// Source: hta/common/trace.py, trace_parser.py and utils/utils.py of HolisticTraceAnalysis 0.5.
#pragma once

#include "timeline/device_trace.h"

namespace fullbore::analyze {

// `trace` is finished (DeviceTrace::Finish) and stays so.
void CutLikeHta(timeline::DeviceTrace& trace);

}  // namespace fullbore::analyze
