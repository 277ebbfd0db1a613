// comm-bound of a pipeline: its stages wait for each other in sends and receives. However even they are, the first
// micro-batch has to come through all of them, and the last one too: that is the bubble, not a rank that is late.
#pragma once

#include <optional>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Of the rank that waits most: at the ends of a step the others idle without a receive that would show it.
struct PipelineBubble {
  int rank = 0;
  double waiting = 0;      // for another stage, of its step
  double transfer_ns = 0;  // of a step, of what stages send each other
};
PipelineBubble BubbleOf(const std::vector<const RankView*>& ranks);

Finding OfThePipeline(const PipelineBubble& bubble, const View& view, Finding finding);

// Of a process with several devices: whether what its device waits for is mostly the others' work, not a collective.
bool WaitsForItsOtherDevices(const RankView& rank);
Finding OfItsDevices(const RankView& rank, Finding finding);

}  // namespace fullbore::diagnose
