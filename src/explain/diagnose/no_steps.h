// Why nothing is judged where no step was seen: of a run, and of a trace, whose fact "trace_holds" says what it holds
// instead.
#pragma once

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::diagnose {

void SayWhyNoSteps(const record::Recording& recording, const record::Stage& stage, Diagnosis& diagnosis);

}  // namespace fullbore::diagnose
