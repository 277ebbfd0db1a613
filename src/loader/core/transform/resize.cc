#include "loader/core/transform/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "loader/core/transform/kind.h"

namespace fullbore::loader {
namespace {

int Saturated(int64_t side) {
  return static_cast<int>(std::clamp<int64_t>(side, 1, std::numeric_limits<int>::max()));
}

void Read(MemberReader& members, Resize& resize) {
  members.Member("height", resize.height);
  members.Member("width", resize.width);
  members.Enum("interpolation", resize.interpolation, kInterpolations);
  members.Member("max_size", resize.max_size);
}

Result<void> Check(const Checker& checker, const Resize& resize) {
  if (auto height = checker.Side("height", resize.height); !height.ok()) return height;
  if (resize.width != 0) {
    if (auto width = checker.Side("width", resize.width); !width.ok()) return width;
  }
  if (resize.max_size == 0) return {};
  if (resize.width != 0) {
    return checker.Wrong("max_size", fmt::format("{}", resize.max_size),
                         fmt::format("0 if width is given (here {})", resize.width));
  }
  if (resize.max_size > resize.height && resize.max_size <= kMaxSide) return {};
  return checker.Wrong(
      "max_size", fmt::format("{}", resize.max_size),
      fmt::format("0 for none, or more than height ({}) and at most {}", resize.height, kMaxSide));
}

void Add(GeometryChain& chain, const Resize& resize, const Draws&) {
  chain.ResizeTo(ResizedSize(resize, chain.size()), resize.interpolation);
}

}  // namespace

Size ResizedSize(const Resize& resize, Size in) {
  if (resize.width > 0) return {resize.width, resize.height};
  const bool portrait = in.width <= in.height;
  const int64_t shorter = portrait ? in.width : in.height, longer = portrait ? in.height : in.width;
  int64_t new_shorter = resize.height, new_longer = resize.height * longer / shorter;
  if (resize.max_size > 0 && new_longer > resize.max_size) {
    new_shorter = resize.max_size * new_shorter / new_longer;
    new_longer = resize.max_size;
  }
  const int a = Saturated(new_shorter), b = Saturated(new_longer);
  return portrait ? Size{a, b} : Size{b, a};
}

constinit const TransformKind Resize::kKind =
    GeometricKind<Resize, Read, Check, ResizedSize, Add>("Resize", 0);

}  // namespace fullbore::loader
