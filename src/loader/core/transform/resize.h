// Resize: torchvision's arithmetic, rounding included.
#pragma once

#include "fullbore/loader.h"
#include "loader/core/transform/geometry.h"

namespace fullbore::loader {

Size ResizedSize(const Resize& resize, Size in);

}  // namespace fullbore::loader
