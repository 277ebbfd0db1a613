// Brightness, contrast, saturation and hue of 8-bit pixels, as Pillow computes them: what torchvision does to
// the images of a data set.
#pragma once

#include "loader/core/transform/draws.h"
#include "loader/core/transform/pixel_buffer.h"

namespace fullbore::loader {

void AdjustBrightness(PixelBuffer& image, double factor);
void AdjustContrast(PixelBuffer& image, double factor);    // around the mean gray of the image
void AdjustSaturation(PixelBuffer& image, double factor);  // leaves gray images unchanged
void AdjustHue(PixelBuffer& image, double shift);          // in turns of the colour wheel; the same

void Apply(const JitterDraw& drawn, PixelBuffer& image);

}  // namespace fullbore::loader
