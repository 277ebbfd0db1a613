// What diagnosis would compute of a recording before it looks for causes: the figures of the steady state.
// Enough of it that a sample's report agrees with its charts.
#pragma once

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::report::testing {

// Fills window, throughput, step time, shares, ranks and resources from the steps that begin at or after
// `steady_ns`.
void Summarise(const record::Stage& stage, int64_t steady_ns, diagnose::Diagnosis& diagnosis);

}  // namespace fullbore::report::testing
