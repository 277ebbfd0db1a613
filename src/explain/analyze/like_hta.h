// Makes a trace what Holistic Trace Analysis takes it for, so that figures can be compared with HTA's:
//   - of a trace with several ProfilerSteps, only the operations launched before the last of them began;
//   - times in whole microseconds, begins rounded up and ends down, if the trace has fractions (which loses up
//     to 18 % of the time of short kernels: for comparison only);
//   - HTA's classes of kernels: communication is `^nccl.*Kernel`, memory `^Memcpy|^Memset|^dma`; other names
//     with Memcpy or Sync in them are neither, and the rest is computation.
//
// Source: hta/common/trace.py, trace_parser.py and utils/utils.py of HolisticTraceAnalysis 0.5.
#pragma once

#include "timeline/device/trace.h"

namespace fullbore::analyze {

// `trace` is finished (DeviceTrace::Finish) and stays so.
void CutLikeHta(timeline::DeviceTrace& trace);

}  // namespace fullbore::analyze
