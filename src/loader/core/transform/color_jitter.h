// Brightness, contrast, saturation and hue of 8-bit pixels, as Pillow computes them: what torchvision does to
// the images of a data set.
#pragma once

#include <array>
#include <optional>

#include "loader/core/transform/draws.h"
#include "loader/core/transform/pixel_buffer.h"

namespace fullbore::loader {

void AdjustBrightness(PixelBuffer& image, double factor);
void AdjustContrast(PixelBuffer& image, double factor);    // around the mean gray of the image
void AdjustSaturation(PixelBuffer& image, double factor);  // leaves gray images unchanged
void AdjustHue(PixelBuffer& image, double shift);          // in turns of the colour wheel; the same

enum class JitterKind { kBrightness, kContrast, kSaturation, kHue };
struct JitterDraw {
  std::array<std::optional<double>, 4> factors;  // by JitterKind; empty: unchanged
  std::array<JitterKind, 4> order;
};
JitterDraw DrawJitter(const ColorJitter& jitter, const Draws& draws);  // torchvision's distribution
void Apply(const JitterDraw& drawn, PixelBuffer& image);

}  // namespace fullbore::loader
