// What a serving engine did in a trace: reading prompts and generating, by its own marks.
#pragma once

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Fills what the report says of an engine. False where the recording is a training.
bool FillServing(const View& view, Diagnosis& diagnosis);

}  // namespace fullbore::diagnose
