// What a diagnosis computes from a recording before it looks for causes: the figures of the steady state.
// Just enough for a sample's report to agree with its charts.
#pragma once

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::report::testing {

// Fills window, throughput, step time, shares, ranks and resources from the steps that begin at or after
// `steady_ns`.
void Summarise(const record::Stage& stage, int64_t steady_ns, diagnose::Diagnosis& diagnosis);

}  // namespace fullbore::report::testing
