#include <fmt/format.h>

#include <cmath>

#include "loader/core/transform/kind.h"

namespace fullbore::loader {
namespace {

void Read(MemberReader& members, Normalize& normalize) {
  members.Member("mean", normalize.mean);
  members.Member("std", normalize.std);
}

Result<void> Check(const Checker& checker, const Normalize& normalize) {
  for (size_t c = 0; c < 3; ++c) {
    const float mean = normalize.mean[c], std = normalize.std[c];
    if (!std::isfinite(mean))
      return checker.Wrong(fmt::format("mean[{}]", c), fmt::format("{}", mean), "finite numbers");
    if (!std::isfinite(std) || std == 0)
      return checker.Wrong(fmt::format("std[{}]", c), fmt::format("{}", std), "finite numbers other than 0");
  }
  return {};
}

}  // namespace

constinit const TransformKind Normalize::kKind = KindOfOutput<Normalize, Read, Check>("Normalize");

}  // namespace fullbore::loader
