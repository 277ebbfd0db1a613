// What own.cc and elsewhere.cc share: steps that are fed by what no hook times, so that only samples of the training
// thread tell how long it waits, and only the waits are known.
#pragma once

#include <optional>

#include "explain/diagnose/activity_shares.h"
#include "explain/diagnose/recorded_pipeline.h"
#include "explain/diagnose/view.h"
#include "explain/replay/pipeline.h"

namespace fullbore::diagnose {

// The share of the step, with the uncertainty of the samples that told it from other work in the loop: `fed` saw the
// training being fed, and `beside` saw the loop do something that has no name.
Sampled ShareOfFeed(const RankView& rank, int64_t fed, int64_t beside);

// The pipeline if this share of the step is waiting.
std::optional<replay::Pipeline> PipelineOfFeed(const View& view, Feeder feeder, double fetch_ns,
                                               double fetch_cpu_ns, double waited, double share);

}  // namespace fullbore::diagnose
