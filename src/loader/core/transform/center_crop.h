// CenterCrop: torchvision's arithmetic, rounding included.
#pragma once

#include "fullbore/loader.h"
#include "loader/core/transform/geometry.h"

namespace fullbore::loader {

// Partly outside the image if that is smaller; the part outside is black.
Rect CenterCropRect(const CenterCrop& crop, Size in);

}  // namespace fullbore::loader
