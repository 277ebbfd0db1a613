// The conditions, one function each: it looks at what is known of the recording and returns its condition, or nothing.
#pragma once

#include <optional>
#include <span>

#include "explain/fitness/fitness.h"

namespace fullbore::fitness {

using Judge = std::optional<Condition> (*)(const Known&);

// Of what was recorded, whichever steps are judged: what is missing, what is wrong with its times.
std::span<const Judge> OfTheRecording();
// Of the steps that are judged.
std::span<const Judge> OfTheSteps();

}  // namespace fullbore::fitness
