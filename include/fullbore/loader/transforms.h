// The image transforms, with torchvision's names, arguments and defaults.
#pragma once

#include <array>
#include <cstdint>
#include <variant>

namespace fullbore::loader {

struct TransformKind;  // what the loader knows of each

enum class Interpolation { kNearest, kBilinear, kBicubic };  // the last two are antialiased, as in Pillow

// width 0: the shorter side becomes `height`, the other keeps the aspect ratio (torchvision's Resize(int)).
struct Resize {
  int height = 0, width = 0;
  Interpolation interpolation = Interpolation::kBilinear;
  int max_size = 0;  // limit of the longer side, only with width 0; 0: none
  static const TransformKind kKind;
};
struct CenterCrop {
  int height = 0, width = 0;
  static const TransformKind kKind;
};
struct RandomResizedCrop {
  int height = 0, width = 0;
  std::array<double, 2> scale = {0.08, 1.0};
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};
  Interpolation interpolation = Interpolation::kBilinear;
  static const TransformKind kKind;
};
struct RandomHorizontalFlip {
  double p = 0.5;
  static const TransformKind kKind;
};
// Factors are drawn from these intervals; {1, 1} (hue: {0, 0}) leaves the property unchanged.
struct ColorJitter {
  std::array<double, 2> brightness = {1, 1}, contrast = {1, 1}, saturation = {1, 1}, hue = {0, 0};
  static const TransformKind kKind;
};
struct RandomRotation {
  std::array<double, 2> degrees = {0, 0};
  Interpolation interpolation = Interpolation::kNearest;
  std::array<uint8_t, 3> fill = {0, 0, 0};
  static const TransformKind kKind;
};
// On values in [0, 1]; the defaults are ImageNet's.
struct Normalize {
  std::array<float, 3> mean = {0.485f, 0.456f, 0.406f};
  std::array<float, 3> std = {0.229f, 0.224f, 0.225f};
  static const TransformKind kKind;
};
using Transform = std::variant<Resize, CenterCrop, RandomResizedCrop, RandomHorizontalFlip, ColorJitter,
                               RandomRotation, Normalize>;
const char* NameOf(const Transform& transform);  // "RandomResizedCrop"

}  // namespace fullbore::loader
