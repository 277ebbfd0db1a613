#include "loader/core/transform/kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace fullbore::loader {
namespace {

uint8_t Rounded(int32_t sum, int precision) {
  return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255));
}

int32_t Half(int precision) { return precision > 0 ? 1 << (precision - 1) : 0; }

template <int kChannels>
void HorizontalRow(const uint8_t* in, const Taps& taps, uint8_t* out) {
  const int16_t* weights = taps.weights.data();
  // If the image is narrower than the filter, surplus taps have weight 0 and are outside of it.
  const int inside = std::min(taps.taps, taps.input);
  for (const int32_t start : taps.start) {
    const uint8_t* pixel = in + static_cast<size_t>(start) * kChannels;
    std::array<int32_t, kChannels> sums;
    sums.fill(Half(taps.precision));
    for (int k = 0; k < inside; ++k, pixel += kChannels) {
      for (size_t c = 0; c < kChannels; ++c) sums[c] += weights[k] * pixel[c];
    }
    for (const int32_t sum : sums) *out++ = Rounded(sum, taps.precision);
    weights += taps.taps;
  }
}

template <int kChannels>
void Horizontal(const uint8_t* in0, const uint8_t* in1, const Taps& taps, uint8_t* out0, uint8_t* out1) {
  HorizontalRow<kChannels>(in0, taps, out0);
  HorizontalRow<kChannels>(in1, taps, out1);
}

void Vertical(const uint8_t* const* rows, const int16_t* weights, int taps, int precision, size_t bytes,
              uint8_t* out) {
  for (size_t i = 0; i < bytes; ++i) {
    int32_t sum = Half(precision);
    for (int k = 0; k < taps; ++k) sum += weights[k] * rows[k][i];
    out[i] = Rounded(sum, precision);
  }
}

template <typename T>
void Put(std::byte* out, size_t index, uint32_t bits) {
  const T value = static_cast<T>(bits);
  std::memcpy(out + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
void WritePlanesAs(const uint8_t* rgb, size_t width, const ValueMap& map, std::byte* const planes[3]) {
  for (size_t c = 0; c < 3; ++c) {
    for (size_t x = 0; x < width; ++x) Put<T>(planes[c], x, map.table[c][rgb[3 * x + c]]);
  }
}

void WritePlanes(const uint8_t* rgb, size_t width, const ValueMap& map, std::byte* const planes[3]) {
  switch (BytesOf(map.dtype)) {
    case 1:
      return WritePlanesAs<uint8_t>(rgb, width, map, planes);
    case 2:
      return WritePlanesAs<uint16_t>(rgb, width, map, planes);
    default:
      return WritePlanesAs<uint32_t>(rgb, width, map, planes);
  }
}

template <typename T>
void WriteValuesAs(const uint8_t* bytes, size_t count, const ValueMap& map, std::byte* out) {
  const auto channels = static_cast<size_t>(map.channels);
  for (size_t i = 0; i < count; ++i) Put<T>(out, i, map.table[i % channels][bytes[i]]);
}

void WriteValues(const uint8_t* bytes, size_t count, const ValueMap& map, std::byte* out) {
  switch (BytesOf(map.dtype)) {
    case 1:
      std::memcpy(out, bytes, count);
      return;
    case 2:
      return WriteValuesAs<uint16_t>(bytes, count, map, out);
    default:
      return WriteValuesAs<uint32_t>(bytes, count, map, out);
  }
}

uint32_t BitsOf(DType dtype, float value) {
  switch (dtype) {
    case DType::kFloat16:
      return ToFloat16(value);
    case DType::kBFloat16:
      return ToBFloat16(value);
    default:
      return std::bit_cast<uint32_t>(value);
  }
}

}  // namespace

uint16_t ToFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);   // not a number
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to beyond 65504
  if (magnitude < 0x38800000) {  // subnormal: adding 0.5 lets the FPU round at 2^-24
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13));
}

uint16_t ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);  // not a number
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

ValueMap ValueMap::Of(DType dtype, int channels, const Normalize* normalize) {
  ValueMap map;
  map.dtype = dtype;
  map.channels = channels;
  for (size_t c = 0; c < 3; ++c) {
    if (dtype == DType::kUInt8) {
      for (uint32_t v = 0; v < 256; ++v) map.table[c][v] = v;
      continue;
    }
    map.scale[c] = 1.0f / 255;
    if (normalize != nullptr) {
      map.scale[c] = static_cast<float>(1.0 / (255.0 * normalize->std[c]));
      map.bias[c] = static_cast<float>(-static_cast<double>(normalize->mean[c]) / normalize->std[c]);
    }
    for (size_t v = 0; v < 256; ++v) {
      const float scaled = static_cast<float>(v) * map.scale[c];
      map.table[c][v] = BitsOf(dtype, scaled + map.bias[c]);
    }
  }
  return map;
}

const Kernels& PortableKernels() {
  static constexpr Kernels kernels = {Horizontal<3>, Horizontal<1>, Vertical, WritePlanes, WriteValues};
  return kernels;
}

const Kernels& BestKernels() {
  static const Kernels* avx2 = Avx2Kernels();
  return avx2 != nullptr ? *avx2 : PortableKernels();
}

}  // namespace fullbore::loader
