// The floating-point operations that a training's model computes, as its modules told the hook, and what that is of the
// device's peak: MFU, model FLOPs utilisation.
#pragma once

#include <optional>

#include "explain/diagnose/diagnosis.h"
#include "explain/diagnose/view.h"

namespace fullbore::diagnose {

// Of the first rank, without what the backward pass computes again: that is not the model's. Where the batches that were
// counted are not as wide as the others, their operations follow the tokens, and those of attention the squares of the
// lengths. Nothing where the hook could not look into the model.
std::optional<ModelFlops> ModelFlopsOf(const View& view, double steps_per_s);

// Why it could not; empty where it could, or never tried.
std::string WhyNoModelFlops(const View& view);

}  // namespace fullbore::diagnose
