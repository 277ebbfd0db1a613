// input-bound where the steps wait for what another process makes: the rollouts of generators, the answers of an
// inference server, batches of a process of the script's own.
#pragma once

#include <optional>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Completes `finding`, which has its share and its severity; nothing where most of the wait is for something else. The
// other process has no loader that could be replayed: the gain is that of more of it, or of asking it ahead of time.
std::optional<Finding> FromElsewhere(const View& view, Finding finding, Diagnosis& diagnosis);

}  // namespace fullbore::diagnose
