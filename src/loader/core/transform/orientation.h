// EXIF's eight orientations: how the image that people see lies in the file.
#pragma once

#include <cstdint>
#include <vector>

#include "loader/core/image/image.h"
#include "loader/core/transform/geometry.h"
#include "loader/core/transform/resampler.h"

namespace fullbore::loader {

// Width and height exchanged for the orientations 5 to 8.
Size UprightSize(Size stored, int orientation);
// Where a part of the upright image lies in the stored one, and the other way round.
Rect StoredRect(const Rect& upright, Size stored, int orientation);
Rect UprightRect(const Rect& stored_part, Size stored, int orientation);

// Copies `stored`, a part of an image of `whole` pixels, upright into `storage`.
ImageView TurnUpright(const ImageView& stored, Size whole, int orientation, std::vector<uint8_t>& storage);

}  // namespace fullbore::loader
