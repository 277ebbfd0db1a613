// A recording becomes a diagnosis. Pure: no files, no clock, the same answer for the same recording.
#pragma once

#include <string>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::diagnose {

// The stage that a diagnosis is of: the named one, or without a name the one that trained longest
// (of equals the first). Null where there is none.
const record::Stage* JudgedStage(const record::Recording& recording, const std::string& name = "");

// Judges that stage; without one it is a diagnosis without steps and findings.
Diagnosis Diagnose(const record::Recording& recording, const std::string& stage = "");

}  // namespace fullbore::diagnose
