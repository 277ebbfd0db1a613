#include "loader/core/transform/draws.h"

#include <algorithm>

#include "loader/core/transform/kind.h"

namespace fullbore::loader {
namespace {

constexpr int kMaxOfAKind = 1 << 16;

}  // namespace

Draws::Draws(SampleSeed seed, const std::vector<Transform>& transforms, size_t index) : seed_(seed) {
  int before = 0;
  for (size_t i = 0; i < index; ++i) before += transforms[i].index() == transforms[index].index() ? 1 : 0;
  position_ = KindOf(transforms[index]).seed_number * kMaxOfAKind + before;
}

double Draws::Between(int index, double low, double high) const {
  return low + (high - low) * seed_.Uniform(position_, index);
}

int Draws::Below(int index, int limit) const {
  return std::min(static_cast<int>(seed_.Uniform(position_, index) * limit), limit - 1);
}

}  // namespace fullbore::loader
