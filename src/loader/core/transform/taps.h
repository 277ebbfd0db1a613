// The filter of one axis of a resampling: the weights of the input pixels for each wanted output position.
// Pillow's definition: a triangle or Keys' cubic (a = -0.5), widened by the shrink factor, cut off at the
// borders of the crop and normalised. Weights are 16-bit integers, as precise as 16 bits allow for the
// largest of them; Pillow's have 22 bits after the point, so that results differ by 1 now and then.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "fullbore/loader.h"

namespace fullbore::loader {

struct Axis {
  double origin = 0, length = 0;  // the crop, in pixels of the image at hand: scaled images have fractions
  int out_length = 0;             // what the crop is resized to
  int first = 0, count = 0;       // the wanted output positions
  bool mirror_in = false;         // the crop is mirrored before
  bool mirror_out = false;        // the wanted positions come in reverse
  Interpolation interpolation = Interpolation::kBilinear;
  int begin = 0, end = 0;  // the pixels there are; Taps::start counts from `begin`

  bool operator==(const Axis&) const = default;
  bool identity() const {
    return length == out_length && origin == std::floor(origin) && !mirror_in && !mirror_out;
  }
};

struct Span {
  int begin = 0, end = 0;
};
// The input pixels that `axis` reads, within `begin` and `end`, with `margin` more on either side.
Span NeededBy(const Axis& axis, int margin);

struct Taps {
  int taps = 0;                  // weights per output position, even: surplus ones are 0
  int precision = 0;             // weights are multiples of 2^-precision
  int input = 0;                 // pixels there are: start + taps exceeds it only where taps > input
  std::vector<int32_t> start;    // per output position, never negative
  std::vector<int16_t> weights;  // taps per output position
};

class TapBuilder {
 public:
  // Keeps the last result: a series of images of one size computes its filters once.
  const Taps& Build(const Axis& axis);

 private:
  template <double (*kFilter)(double)>
  void AddFiltered(const Axis& axis);
  void AddNearest(const Axis& axis);
  void Quantise(const Axis& axis);

  struct Position {
    int start = 0, count = 0;
    size_t at = 0;  // into exact_
  };
  Axis axis_;
  std::vector<Position> positions_;
  std::vector<double> exact_;
  double largest_ = 0;  // of exact_
  Taps taps_;
};

}  // namespace fullbore::loader
