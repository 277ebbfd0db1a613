// One step of a trace as people look at it (record/step_timeline.h).
#pragma once

#include <cstddef>
#include <vector>

#include "record/step_timeline.h"
#include "timeline/device/host.h"
#include "timeline/device/steps.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

// What a page can hold of each rank: about 300 KB.
inline constexpr size_t kMaxTimelinePieces = 8'000;

// What ran between the step's begin and end, cut there. Beyond `max_pieces`, neighbours that are too short to be told
// apart are drawn as one. Without `step` and `shares`.
record::StepTimeline TimelineOf(const DeviceTrace& trace, const HostActivity& host, const StepBounds& step,
                                size_t max_pieces = kMaxTimelinePieces);

}  // namespace fullbore::timeline
