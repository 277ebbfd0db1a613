// By how much two starts of one program differ though nothing was changed: where its memory lies, what the caches and the
// neighbours do. No interval within a recording holds that; whoever compares two recordings adds it.
#pragma once

#include "explain/diagnose/diagnosis.h"

namespace fullbore::diagnose {

// Standard deviations of the ratio of two starts, as measured (docs/measurements.md): on a machine that is quiet, and where
// a recording says that its machine was not.
inline constexpr double kBetweenStarts = 0.04, kBetweenRestlessStarts = 0.10;

// Half of the 95 % interval of their ratio that comes of this alone.
double BetweenStarts(const Diagnosis& before, const Diagnosis& after);

}  // namespace fullbore::diagnose
