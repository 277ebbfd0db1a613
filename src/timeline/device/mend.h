// Times that cannot be: what recorders are known to write by mistake is left out, cut or moved, and noticed.
// In this order, from DeviceTrace::Finish.
#pragma once

#include "timeline/device/trace.h"

namespace fullbore::timeline {

// Events without a time (0, where the others are elsewhere), and those a day or more away from the rest.
void LeaveOutImpossibleTimes(DeviceTrace* trace);

// A step that is marked on two threads, or twice on one, is one step.
void LeaveOutRepeatedMarks(DeviceTrace* trace);

// A kernel that was recorded until after its successor on the stream had ended, ended where that one began.
void CutCoveringOperations(DeviceTrace* trace);

}  // namespace fullbore::timeline
