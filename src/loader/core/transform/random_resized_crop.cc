#include "loader/core/transform/random_resized_crop.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "loader/core/transform/kind.h"

namespace fullbore::loader {
namespace {

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

void Read(MemberReader& members, RandomResizedCrop& crop) {
  members.Member("height", crop.height);
  members.Member("width", crop.width);
  members.Member("scale", crop.scale);
  members.Member("ratio", crop.ratio);
  members.Enum("interpolation", crop.interpolation, kInterpolations);
}

Result<void> Check(const Checker& checker, const RandomResizedCrop& crop) {
  // The smallest float: a ratio of 0 has no logarithm.
  return Checker::First(
      {checker.Sides(crop.height, crop.width), checker.Interval("scale", crop.scale, 0, Checker::kInfinity),
       checker.Interval("ratio", crop.ratio, std::numeric_limits<float>::min(), Checker::kInfinity)});
}

Size SizeAfterCrop(const RandomResizedCrop& crop, Size) { return {crop.width, crop.height}; }

void Add(GeometryChain& chain, const RandomResizedCrop& crop, const Draws& draws) {
  chain.Crop(DrawCrop(crop, chain.size(), draws));
  chain.ResizeTo({crop.width, crop.height}, crop.interpolation);
}

}  // namespace

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

constinit const TransformKind RandomResizedCrop::kKind =
    GeometricKind<RandomResizedCrop, Read, Check, SizeAfterCrop, Add>("RandomResizedCrop", 1);

}  // namespace fullbore::loader
