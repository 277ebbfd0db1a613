// What each random transform draws for a sample: torchvision's distributions, from the sample's own random
// numbers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "loader/core/randomness.h"
#include "loader/core/transform/geometry.h"

namespace fullbore::loader {

// The numbers of one transform of one sample.
class Draws {
 public:
  // Transforms are numbered by kind, and within their kind by order, so that one of another kind anywhere in
  // the list changes nothing for the rest.
  Draws(SampleSeed seed, const std::vector<Transform>& transforms, size_t index);

  double Between(int index, double low, double high) const;
  int Below(int index, int limit) const;  // 0 to limit - 1

 private:
  SampleSeed seed_;
  int position_ = 0;
};

// Ten tries to fit a rectangle of random area and aspect ratio, then the largest central one that is allowed.
Rect DrawCrop(const RandomResizedCrop& crop, Size image, const Draws& draws);

bool DrawFlip(const RandomHorizontalFlip& flip, const Draws& draws);

enum class JitterKind { kBrightness, kContrast, kSaturation, kHue };
struct JitterDraw {
  std::array<std::optional<double>, 4> factors;  // by JitterKind; empty: unchanged
  std::array<JitterKind, 4> order;
};
JitterDraw DrawJitter(const ColorJitter& jitter, const Draws& draws);

double DrawAngle(const RandomRotation& rotation, const Draws& draws);  // degrees, counter-clockwise

}  // namespace fullbore::loader
