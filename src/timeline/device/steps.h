// Where one step ends and the next begins, in a recording of device activity.
//
// A step of the host ends on the device only when the work launched in it is done: a step lasts from the end
// of the device's work for the previous step to the end of its own (as torch-tb-profiler counts, so that the
// numbers agree). Consecutive steps leave no gap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::timeline {

struct StepBounds {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

struct FoundSteps {
  std::vector<StepBounds> steps;
  std::string how;      // a sentence for the report; empty if the trace itself marks its steps
  bool marked = false;  // by the user or the profiler, not guessed
  record::StepsBy by = record::StepsBy::kNothing;
  int64_t empty = 0;  // marked steps at the ends that are left out: the device did nothing in them
  int64_t bare = 0;   // and those in which it did, but what it did was not recorded
};

// By ProfilerStep#N; else by Optimizer.step; else by the period of the kernels; else
// the whole trace is one step.
FoundSteps FindSteps(const DeviceTrace& trace);

// How the steps were told, and how much of the device's time they cover.
void NoticeSteps(const DeviceTrace& trace, const FoundSteps& found, record::Noticed* noticed);

}  // namespace fullbore::timeline
