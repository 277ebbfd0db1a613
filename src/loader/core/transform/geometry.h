// Sizes and regions only: the result of a chain of resizes, crops and flips, computed before any pixel is
// read.
#pragma once

#include <vector>

#include "fullbore/loader.h"
#include "loader/core/image/image.h"

namespace fullbore::loader {

struct Size {
  int width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

// One resampling: `box` of the input is resized to `size`, of which only `window` is computed. Mirrors are
// left to right, of the input before the box is resized and of the window afterwards; `box` and `window` are
// given in coordinates before their mirror.
struct Pass {
  Size input;
  Rect box;
  Size size;
  Rect window;  // may reach outside `size`: black
  bool mirror_box = false, mirror_window = false;
  Interpolation interpolation = Interpolation::kBilinear;

  bool changes_nothing() const;  // the window is the input
};

// Composes geometric transforms into as few passes as possible: crop, resize and crop again are one.
class GeometryChain {
 public:
  void Start(Size input);
  void Crop(const Rect& rect);  // of the current image; parts outside of it are padded with black
  void ResizeTo(Size size, Interpolation interpolation);
  void Flip();

  Size size() const;                                           // of the current image
  const std::vector<Pass>& passes() const { return passes_; }  // at least one

 private:
  void StartPass(Size input);
  std::vector<Pass> passes_;
  bool sized_ = false;  // the last pass has its size: crops now are windows of it
};

}  // namespace fullbore::loader
