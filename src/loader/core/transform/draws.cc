#include "loader/core/transform/draws.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/overloaded.h"

namespace fullbore::loader {
namespace {

constexpr int kDrawsNothing = 0;

// Part of what a seed means: a number never changes, even when transforms are added to the variant.
int KindNumber(const Transform& transform) {
  return std::visit(
      Overloaded{[](const RandomResizedCrop&) { return 1; }, [](const RandomHorizontalFlip&) { return 2; },
                 [](const ColorJitter&) { return 3; }, [](const RandomRotation&) { return 4; },
                 [](const OneOf<Resize, CenterCrop, Normalize> auto&) { return kDrawsNothing; }},
      transform);
}

constexpr int kMaxOfAKind = 1 << 16;
constexpr int kCropTries = 10;   // torchvision's
constexpr int kDrawsPerTry = 4;  // area, ratio, top, left

int Round(double x) { return static_cast<int>(std::nearbyint(x)); }  // as Python: halves to even

// A rectangle of the first admissible aspect ratio, as large as fits.
Rect CentralCrop(const RandomResizedCrop& crop, Size image) {
  const double ratio = static_cast<double>(image.width) / image.height;
  Rect rect = {0, 0, image.width, image.height};
  if (ratio < crop.ratio[0]) rect.height = Round(image.width / crop.ratio[0]);
  if (ratio > crop.ratio[1]) rect.width = Round(image.height * crop.ratio[1]);
  rect.height = std::clamp(rect.height, 1, image.height);
  rect.width = std::clamp(rect.width, 1, image.width);
  rect.x = (image.width - rect.width) / 2;
  rect.y = (image.height - rect.height) / 2;
  return rect;
}

}  // namespace

Draws::Draws(SampleSeed seed, const std::vector<Transform>& transforms, size_t index) : seed_(seed) {
  const int kind = KindNumber(transforms[index]);
  int before = 0;
  for (size_t i = 0; i < index; ++i) before += KindNumber(transforms[i]) == kind ? 1 : 0;
  position_ = kind * kMaxOfAKind + before;
}

double Draws::Between(int index, double low, double high) const {
  return low + (high - low) * seed_.Uniform(position_, index);
}

int Draws::Below(int index, int limit) const {
  return std::min(static_cast<int>(seed_.Uniform(position_, index) * limit), limit - 1);
}

Rect DrawCrop(const RandomResizedCrop& crop, Size image, const Draws& draws) {
  const double area = static_cast<double>(image.width) * image.height;
  const double log_low = std::log(crop.ratio[0]), log_high = std::log(crop.ratio[1]);
  for (int attempt = 0; attempt < kCropTries; ++attempt) {
    const int first = attempt * kDrawsPerTry;
    const double target = area * draws.Between(first, crop.scale[0], crop.scale[1]);
    const double ratio = std::exp(draws.Between(first + 1, log_low, log_high));
    const double width = std::nearbyint(std::sqrt(target * ratio));
    const double height = std::nearbyint(std::sqrt(target / ratio));
    if (!(width > 0 && width <= image.width && height > 0 && height <= image.height)) continue;
    const int w = Round(width), h = Round(height);
    return {draws.Below(first + 3, image.width - w + 1), draws.Below(first + 2, image.height - h + 1), w, h};
  }
  return CentralCrop(crop, image);
}

bool DrawFlip(const RandomHorizontalFlip& flip, const Draws& draws) {
  return draws.Between(0, 0, 1) < flip.p;
}

JitterDraw DrawJitter(const ColorJitter& jitter, const Draws& draws) {
  JitterDraw drawn;
  const std::array<double, 2> intervals[4] = {jitter.brightness, jitter.contrast, jitter.saturation,
                                              jitter.hue};
  for (int i = 0; i < 4; ++i) {
    const auto at = static_cast<size_t>(i);
    const double neutral = at == static_cast<size_t>(JitterKind::kHue) ? 0 : 1;
    const auto [low, high] = intervals[at];
    if (low != neutral || high != neutral) drawn.factors[at] = draws.Between(i, low, high);
    drawn.order[at] = static_cast<JitterKind>(i);
  }
  for (int last = 3; last > 0; --last) {  // Fisher and Yates
    std::swap(drawn.order[static_cast<size_t>(last)],
              drawn.order[static_cast<size_t>(draws.Below(3 + last, last + 1))]);
  }
  return drawn;
}

double DrawAngle(const RandomRotation& rotation, const Draws& draws) {
  return draws.Between(0, rotation.degrees[0], rotation.degrees[1]);
}

}  // namespace fullbore::loader
