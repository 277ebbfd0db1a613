#include "loader/core/transform/center_crop.h"

#include <cmath>

#include "loader/core/transform/kind.h"

namespace fullbore::loader {
namespace {

// Python's round(x / 2): rounds halves to even.
int RoundedHalf(int x) { return static_cast<int>(std::nearbyint(x / 2.0)); }

int CenteredOffset(int image, int crop) {
  return crop > image ? -((crop - image) / 2) : RoundedHalf(image - crop);
}

void Read(MemberReader& members, CenterCrop& crop) {
  members.Member("height", crop.height);
  members.Member("width", crop.width);
}

Result<void> Check(const Checker& checker, const CenterCrop& crop) {
  return checker.Sides(crop.height, crop.width);
}

Size SizeAfterCrop(const CenterCrop& crop, Size) { return {crop.width, crop.height}; }

void Add(GeometryChain& chain, const CenterCrop& crop, const Draws&) {
  chain.Crop(CenterCropRect(crop, chain.size()));
}

}  // namespace

Rect CenterCropRect(const CenterCrop& crop, Size in) {
  return {CenteredOffset(in.width, crop.width), CenteredOffset(in.height, crop.height), crop.width,
          crop.height};
}

constinit const TransformKind CenterCrop::kKind =
    GeometricKind<CenterCrop, Read, Check, SizeAfterCrop, Add>("CenterCrop", 0);

}  // namespace fullbore::loader
