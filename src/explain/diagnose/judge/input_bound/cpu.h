// input-bound by the work of the loader's workers: computing, or starting anew in every epoch.
#pragma once

#include "explain/diagnose/judge/input_bound/fetch.h"

namespace fullbore::diagnose {

// `share` of the time is spent in the sampler, which draws an epoch's order.
void BlameSampler(Input& input, double share);

// This part of the wait is spent in the sampler, which draws the samples of each batch.
void BlameSamplerOfEachBatch(Input& input, double part);

// `share` of the time is spent waiting for workers to start.
void BlameRestarts(Input& input, double share);

// More workers where cores are free, no workers where handing over costs more, a cheaper loader, or else less work.
void BlameCpu(Input& input);

}  // namespace fullbore::diagnose
