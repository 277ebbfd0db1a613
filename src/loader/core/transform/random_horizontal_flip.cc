#include "loader/core/transform/random_horizontal_flip.h"

#include <fmt/format.h>

#include "loader/core/transform/kind.h"

namespace fullbore::loader {
namespace {

void Read(MemberReader& members, RandomHorizontalFlip& flip) { members.Member("p", flip.p); }

Result<void> Check(const Checker& checker, const RandomHorizontalFlip& flip) {
  if (flip.p >= 0 && flip.p <= 1) return {};
  return checker.Wrong("p", fmt::format("{}", flip.p), "0 to 1");
}

Size SizeAfterFlip(const RandomHorizontalFlip&, Size in) { return in; }

void Add(GeometryChain& chain, const RandomHorizontalFlip& flip, const Draws& draws) {
  if (DrawFlip(flip, draws)) chain.Flip();
}

}  // namespace

bool DrawFlip(const RandomHorizontalFlip& flip, const Draws& draws) {
  return draws.Between(0, 0, 1) < flip.p;
}

constinit const TransformKind RandomHorizontalFlip::kKind =
    GeometricKind<RandomHorizontalFlip, Read, Check, SizeAfterFlip, Add>("RandomHorizontalFlip", 2);

}  // namespace fullbore::loader
