// A recording becomes a diagnosis. Pure: no files, no clock, the same answer for the same recording.
#pragma once

#include <string>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::diagnose {

// Judges the named stage, or without a name the one that trained most; an empty recording gives a diagnosis
// without steps and findings.
Diagnosis Diagnose(const record::Recording& recording, const std::string& stage = "");

}  // namespace fullbore::diagnose
