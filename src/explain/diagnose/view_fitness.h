// The fitness of what a view shows: its first rank's steps, and the recordings of all of its ranks.
#pragma once

#include <optional>

#include "explain/diagnose/view.h"
#include "explain/fitness/fitness.h"

namespace fullbore::diagnose {

fitness::Fitness FitnessOf(const View& view);

}  // namespace fullbore::diagnose
