// How far the figures of a run can be trusted, and what that does to predictions. What is said of it is a condition of the
// recording's fitness.
#pragma once

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"
#include "explain/fitness/fitness.h"

namespace fullbore::diagnose {

fitness::Doubt DoubtOf(const View& view);

// Adds the noise to the range of the finding's prediction; takes the prediction back where it drowns in it. Marks a
// finding that other programs may have caused.
void Widen(Finding& finding, const fitness::Doubt& doubt);

}  // namespace fullbore::diagnose
