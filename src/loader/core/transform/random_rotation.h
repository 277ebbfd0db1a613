// Rotation of 8-bit pixels about the centre, in an image of the same size: Pillow's Image.rotate.
#pragma once

#include <array>

#include "fullbore/loader.h"
#include "loader/core/transform/draws.h"
#include "loader/core/transform/pixel_buffer.h"

namespace fullbore::loader {

// Counter-clockwise; what is outside the image becomes `fill` (its first value for gray).
void Rotate(const PixelBuffer& in, double degrees, Interpolation interpolation,
            const std::array<uint8_t, 3>& fill, PixelBuffer& out);

double DrawAngle(const RandomRotation& rotation, const Draws& draws);  // degrees, counter-clockwise

}  // namespace fullbore::loader
