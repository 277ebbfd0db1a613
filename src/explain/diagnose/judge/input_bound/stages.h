// input-bound where the training's loader is fullbore.data: its own counters say which stage limits it.
#pragma once

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Completes `finding` (whose share is known) with the limiting stage, the evidence, the fix and the gain. If
// the counters were not recorded, says so in `diagnosis`.
void ExplainByStages(const View& view, const record::Loader& loader, Finding& finding, Diagnosis& diagnosis);

}  // namespace fullbore::diagnose
