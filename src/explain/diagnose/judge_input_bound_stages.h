// input-bound where the training's loader is fullbore.data: its own counters say which of its stages binds.
#pragma once

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Completes `finding` (whose share is known) with the stage that binds, its evidence, the cure and the gain.
// Where the counters were not recorded, says so in `diagnosis`.
void ExplainByStages(const View& view, const record::Loader& loader, Finding& finding, Diagnosis& diagnosis);

}  // namespace fullbore::diagnose
