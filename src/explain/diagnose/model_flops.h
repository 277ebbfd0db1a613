// The floating-point operations that a training's model computes, as its modules told the hook, and what that is of the
// device's peak: MFU, model FLOPs utilisation.
#pragma once

#include <optional>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Of the first rank. Where the first steps' batches are not as wide as the others, their operations follow the tokens, and
// those of attention the squares of the lengths. Nothing where the hook could not look into the model, which is so where
// it was compiled.
std::optional<ModelFlops> ModelFlopsOf(const View& view, double steps_per_s);

}  // namespace fullbore::diagnose
