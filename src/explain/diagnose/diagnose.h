// Turns a recording into a diagnosis. Pure: no files, no clock, the same answer for the same recording.
#pragma once

#include <string>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "explain/replay/change/change.h"
#include "record/recording.h"

namespace fullbore::diagnose {

// The stage that is judged: the named one, or without a name the one that trained longest (the first of
// equals). Null if there is none.
const record::Stage* JudgedStage(const record::Recording& recording, const std::string& name = "");

// Judges that stage. Without one, the diagnosis has no steps and no findings. `what_if`: changes whose gain is
// wanted as well, each given those before it.
Diagnosis Diagnose(const record::Recording& recording, const std::string& stage = "",
                   const std::vector<const replay::Change*>& what_if = {});

}  // namespace fullbore::diagnose
