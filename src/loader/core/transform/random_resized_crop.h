// RandomResizedCrop: torchvision's distribution.
#pragma once

#include "fullbore/loader.h"
#include "loader/core/transform/draws.h"
#include "loader/core/transform/geometry.h"

namespace fullbore::loader {

// Ten tries to fit a rectangle of random area and aspect ratio, then the largest central one that is allowed.
Rect DrawCrop(const RandomResizedCrop& crop, Size image, const Draws& draws);

}  // namespace fullbore::loader
