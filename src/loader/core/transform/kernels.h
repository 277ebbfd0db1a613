// The inner loops, in plain C++ and for AVX2; both give the same bytes. Which one runs is decided once, by
// the CPU at hand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fullbore/loader.h"
#include "loader/core/transform/taps.h"

namespace fullbore::loader {

// Rows passed to `horizontal` and to the writers may be read,
// and output rows written, this far beyond their last pixel.
constexpr size_t kRowSlack = 32;

// How the bytes of each channel are converted: byte * scale + bias, in `dtype`.
struct ValueMap {
  DType dtype = DType::kFloat32;
  int channels = 3;
  std::array<float, 3> scale = {1, 1, 1}, bias = {0, 0, 0};
  // The same for all 256 bytes of each channel, as bits of
  // the dtype: for the portable loops and the ends of rows.
  std::array<std::array<uint32_t, 256>, 3> table = {};

  // Bytes become [0, 1] and are normalised; kUInt8 keeps them.
  static ValueMap Of(DType dtype, int channels, const Normalize* normalize);
};

uint16_t ToFloat16(float value);   // rounded to the nearest, ties to even
uint16_t ToBFloat16(float value);  // the same

struct Kernels {
  // Two rows of RGB (or of gray) at once, filtered along x.
  void (*horizontal_rgb)(const uint8_t* in0, const uint8_t* in1, const Taps& taps, uint8_t* out0,
                         uint8_t* out1);
  void (*horizontal_gray)(const uint8_t* in0, const uint8_t* in1, const Taps& taps, uint8_t* out0,
                          uint8_t* out1);
  // One row: the sum of `taps` rows of `bytes` each, weighted. Reads and writes nothing beyond.
  void (*vertical)(const uint8_t* const* rows, const int16_t* weights, int taps, int precision, size_t bytes,
                   uint8_t* out);
  // One row of pixels to three planes, or to values in the order of the bytes.
  void (*write_planes)(const uint8_t* rgb, size_t width, const ValueMap& map, std::byte* const planes[3]);
  void (*write_values)(const uint8_t* bytes, size_t count, const ValueMap& map, std::byte* out);
};

const Kernels& PortableKernels();
const Kernels* Avx2Kernels();  // null where the CPU lacks AVX2 or F16C
const Kernels& BestKernels();

}  // namespace fullbore::loader
