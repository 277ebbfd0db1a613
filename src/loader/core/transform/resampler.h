// Runs one Pass over decoded pixels, row by row: each row of the output is handed on while it is still in
// the cache, and only as many horizontally filtered rows are kept as the vertical filter spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loader/core/transform/geometry.h"
#include "loader/core/transform/kernels.h"
#include "loader/core/transform/taps.h"

namespace fullbore::loader {

// A view of 8-bit interleaved pixels: `region` of an image that is scaled down by `scale`.
struct ImageView {
  const uint8_t* data = nullptr;
  size_t bytes = 0;  // that may be read from `data` on
  size_t stride = 0;
  int channels = 3;
  Rect region;
  int scale = 1;
};

class RowSink {
 public:
  virtual ~RowSink() = default;
  // `row` may be read kRowSlack bytes beyond its last pixel.
  virtual void Put(int y, const uint8_t* row) = 0;
};

// The part of the input that `pass` reads, when the image is decoded at 1/scale.
Rect SourceRegion(const Pass& pass, int scale);

class Resampler {
 public:
  explicit Resampler(const Kernels& kernels) : kernels_(kernels) {}
  void Run(const Pass& pass, const ImageView& image, RowSink& sink);

 private:
  void Prepare(const Pass& pass, const ImageView& image);
  const uint8_t* FilteredRow(int y);  // filtered along x, from the ring
  const uint8_t* SourceRow(int y, size_t spare);
  const uint8_t* Composed(int y);  // the wanted row `y` of the resized image, without its black margins

  const Kernels& kernels_;
  TapBuilder across_builder_, down_builder_;

  // Of the current Run.
  ImageView image_;
  size_t channels_ = 3;
  Axis across_, down_;
  const Taps* across_taps_ = nullptr;  // null: x is copied
  const Taps* down_taps_ = nullptr;    // null: y is copied
  size_t left_bytes_ = 0, inner_bytes_ = 0, row_bytes_ = 0;
  int next_row_ = 0;  // of the input, that the ring does not hold yet
  int ring_rows_ = 0;
  size_t ring_stride_ = 0;
  std::vector<uint8_t> ring_, line_, spares_[2];
  std::vector<const uint8_t*> pointers_;
};

}  // namespace fullbore::loader
