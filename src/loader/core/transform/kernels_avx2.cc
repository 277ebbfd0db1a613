#include "loader/core/transform/kernels.h"

// Only functions marked so may assume anything about the CPU; lambdas and library templates would not inherit
// the mark.
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include <cstring>

#define FB_AVX2 __attribute__((target("avx2,f16c")))
#define FB_AVX2_INLINE FB_AVX2 __attribute__((always_inline)) inline

namespace fullbore::loader {
namespace {

// Two weights as one 32-bit lane, for a multiply-add of neighbouring pairs.
FB_AVX2_INLINE __m256i PairOf(const int16_t* weights) {
  int32_t pair;
  std::memcpy(&pair, weights, sizeof(pair));
  return _mm256_set1_epi32(pair);
}

FB_AVX2_INLINE __m256i Load2(const uint8_t* low, const uint8_t* high) {
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low));
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(high));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

FB_AVX2_INLINE __m256i InBothLanes(__m128i lane) { return _mm256_broadcastsi128_si256(lane); }

// One output pixel of two rows, one a 128-bit lane, as 32-bit sums (r, g, b, -). 16 bytes hold five pixels:
// four are used, as two pairs widened to 16 bits: r0 r1 g0 g1 b0 b1 - -.
FB_AVX2_INLINE __m256i PixelSums(const uint8_t* in0, const uint8_t* in1, const int16_t* weights, int taps,
                                 __m256i half) {
  const __m256i first = InBothLanes(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  const __m256i second =
      InBothLanes(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
  __m256i sums = half;
  int k = 0;
  for (; k + 4 <= taps; k += 4, in0 += 12, in1 += 12) {
    const __m256i pixels = Load2(in0, in1);
    const __m256i a = _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, first), PairOf(weights + k));
    const __m256i b = _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, second), PairOf(weights + k + 2));
    sums = _mm256_add_epi32(sums, _mm256_add_epi32(a, b));
  }
  if (k < taps) {
    const __m256i pixels = Load2(in0, in1);
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, first), PairOf(weights + k)));
  }
  return sums;
}

// kTaps 0: any number, known only at run time.
template <int kTaps>
FB_AVX2 void HorizontalRgb(const uint8_t* in0, const uint8_t* in1, const Taps& filter, uint8_t* out0,
                           uint8_t* out1) {
  const int taps = kTaps > 0 ? kTaps : filter.taps;
  const __m256i half = _mm256_set1_epi32(filter.precision > 0 ? 1 << (filter.precision - 1) : 0);
  const __m128i shift = _mm_cvtsi32_si128(filter.precision);
  const __m256i dense = InBothLanes(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const int32_t* start = filter.start.data();
  const int16_t* weights = filter.weights.data();
  const size_t count = filter.start.size();
  for (size_t x = 0; x < count; x += 4) {
    __m256i pixels[4];
    for (size_t i = 0; i < 4; ++i) {
      const size_t at = x + i < count ? x + i : count - 1;  // the surplus ends in the slack
      const size_t offset = 3 * static_cast<size_t>(start[at]);
      pixels[i] = PixelSums(in0 + offset, in1 + offset, weights + at * static_cast<size_t>(taps), taps, half);
      pixels[i] = _mm256_sra_epi32(pixels[i], shift);
    }
    const __m256i low = _mm256_packs_epi32(pixels[0], pixels[1]);
    const __m256i high = _mm256_packs_epi32(pixels[2], pixels[3]);
    const __m256i rgb = _mm256_shuffle_epi8(_mm256_packus_epi16(low, high), dense);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out0 + 3 * x), _mm256_castsi256_si128(rgb));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out1 + 3 * x), _mm256_extracti128_si256(rgb, 1));
  }
}

FB_AVX2 void Horizontal(const uint8_t* in0, const uint8_t* in1, const Taps& filter, uint8_t* out0,
                        uint8_t* out1) {
  switch (filter.taps) {
    case 2:
      return HorizontalRgb<2>(in0, in1, filter, out0, out1);
    case 4:
      return HorizontalRgb<4>(in0, in1, filter, out0, out1);
    case 6:
      return HorizontalRgb<6>(in0, in1, filter, out0, out1);
    default:
      return HorizontalRgb<0>(in0, in1, filter, out0, out1);
  }
}

FB_AVX2_INLINE void VerticalChunk(const uint8_t* const* rows, const int16_t* weights, int taps, __m256i half,
                                  __m128i shift, size_t at, uint8_t* out) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i sums[4] = {half, half, half, half};
  for (int k = 0; k < taps; k += 2) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[k] + at));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[k + 1] + at));
    const __m256i pair = PairOf(weights + k);
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    const __m256i wide[4] = {_mm256_unpacklo_epi8(low, zero), _mm256_unpackhi_epi8(low, zero),
                             _mm256_unpacklo_epi8(high, zero), _mm256_unpackhi_epi8(high, zero)};
    for (int i = 0; i < 4; ++i) sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(wide[i], pair));
  }
  for (int i = 0; i < 4; ++i) sums[i] = _mm256_sra_epi32(sums[i], shift);
  const __m256i bytes =
      _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]), _mm256_packs_epi32(sums[2], sums[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at), bytes);
}

FB_AVX2 void Vertical(const uint8_t* const* rows, const int16_t* weights, int taps, int precision,
                      size_t bytes, uint8_t* out) {
  if (bytes < 32) return PortableKernels().vertical(rows, weights, taps, precision, bytes, out);
  const __m256i half = _mm256_set1_epi32(precision > 0 ? 1 << (precision - 1) : 0);
  const __m128i shift = _mm_cvtsi32_si128(precision);
  for (size_t at = 0; at + 32 <= bytes; at += 32) VerticalChunk(rows, weights, taps, half, shift, at, out);
  VerticalChunk(rows, weights, taps, half, shift, bytes - 32, out);  // again what overlaps
}

// Eight values as each dtype stores them. Multiplied, then added: a fused operation would round
// differently from the table.
struct AsFloat32 {
  static constexpr size_t kBytes = 4;
  FB_AVX2_INLINE static void Put(std::byte* out, __m256 values) {
    _mm256_storeu_ps(reinterpret_cast<float*>(out), values);
  }
};
struct AsFloat16 {
  static constexpr size_t kBytes = 2;
  FB_AVX2_INLINE static void Put(std::byte* out, __m256 values) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
  }
};
struct AsBFloat16 {
  static constexpr size_t kBytes = 2;
  FB_AVX2_INLINE static void Put(std::byte* out, __m256 values) {
    const __m256i bits = _mm256_castps_si256(values);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i upper = _mm256_srli_epi32(rounded, 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(upper, upper), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(packed));
  }
};

FB_AVX2_INLINE __m256 Mapped(__m256i bytes, __m256 scale, __m256 bias) {
  return _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(bytes), scale), bias);
}

// Every third byte of a lane from `c` on, as 32-bit values.
FB_AVX2_INLINE __m256i EveryThird(char c) {
  const char b = static_cast<char>(c + 3), d = static_cast<char>(c + 6), e = static_cast<char>(c + 9);
  return InBothLanes(_mm_setr_epi8(c, -1, -1, -1, b, -1, -1, -1, d, -1, -1, -1, e, -1, -1, -1));
}

// Which bytes of the n-th 16 of 48 belong to 16 values of a channel, and where; 0x80 gives 0.
struct SplitMasks {
  alignas(16) uint8_t masks[3][3][16] = {};
  constexpr SplitMasks() {
    for (int c = 0; c < 3; ++c) {
      for (int n = 0; n < 3; ++n) {
        for (int i = 0; i < 16; ++i) {
          const int at = 3 * i + c - 16 * n;
          masks[c][n][i] = static_cast<uint8_t>(at >= 0 && at < 16 ? at : 0x80);
        }
      }
    }
  }
};
constexpr SplitMasks kSplitMasks;

// Bytes as they are.
FB_AVX2 void SplitPlanes(const uint8_t* rgb, size_t width, const ValueMap& map, std::byte* const planes[3]) {
  size_t x = 0;
  for (; x + 16 <= width; x += 16) {
    for (size_t c = 0; c < 3; ++c) {
      __m128i values = _mm_setzero_si128();
      for (size_t n = 0; n < 3; ++n) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rgb + 3 * x + 16 * n));
        const __m128i mask = _mm_load_si128(reinterpret_cast<const __m128i*>(kSplitMasks.masks[c][n]));
        values = _mm_or_si128(values, _mm_shuffle_epi8(bytes, mask));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(planes[c] + x), values);
    }
  }
  std::byte* const rest[3] = {planes[0] + x, planes[1] + x, planes[2] + x};
  PortableKernels().write_planes(rgb + 3 * x, width - x, map, rest);
}

template <typename As>
FB_AVX2 void WritePlanesAs(const uint8_t* rgb, size_t width, const ValueMap& map,
                           std::byte* const planes[3]) {
  const __m256i pick[3] = {EveryThird(0), EveryThird(1), EveryThird(2)};
  __m256 scale[3], bias[3];
  for (size_t c = 0; c < 3; ++c) {
    scale[c] = _mm256_set1_ps(map.scale[c]);
    bias[c] = _mm256_set1_ps(map.bias[c]);
  }
  size_t x = 0;
  for (; x + 8 <= width; x += 8) {
    const __m256i pixels = Load2(rgb + 3 * x, rgb + 3 * x + 12);
    for (size_t c = 0; c < 3; ++c) {
      As::Put(planes[c] + x * As::kBytes, Mapped(_mm256_shuffle_epi8(pixels, pick[c]), scale[c], bias[c]));
    }
  }
  if (x == width) return;
  std::byte* const rest[3] = {planes[0] + x * As::kBytes, planes[1] + x * As::kBytes,
                              planes[2] + x * As::kBytes};
  PortableKernels().write_planes(rgb + 3 * x, width - x, map, rest);
}

FB_AVX2 void WritePlanes(const uint8_t* rgb, size_t width, const ValueMap& map, std::byte* const planes[3]) {
  switch (map.dtype) {
    case DType::kFloat32:
      return WritePlanesAs<AsFloat32>(rgb, width, map, planes);
    case DType::kFloat16:
      return WritePlanesAs<AsFloat16>(rgb, width, map, planes);
    case DType::kBFloat16:
      return WritePlanesAs<AsBFloat16>(rgb, width, map, planes);
    default:
      return SplitPlanes(rgb, width, map, planes);
  }
}

// 24 values at a time: a multiple of both 3 channels and 8 lanes.
template <typename As>
FB_AVX2 void WriteValuesAs(const uint8_t* bytes, size_t count, const ValueMap& map, std::byte* out) {
  __m256 scale[3], bias[3];
  float scales[24], biases[24];
  for (size_t i = 0; i < 24; ++i) {
    const size_t c = i % static_cast<size_t>(map.channels);
    scales[i] = map.scale[c];
    biases[i] = map.bias[c];
  }
  for (size_t i = 0; i < 3; ++i) {
    scale[i] = _mm256_loadu_ps(scales + 8 * i);
    bias[i] = _mm256_loadu_ps(biases + 8 * i);
  }
  size_t at = 0;
  for (; at + 24 <= count; at += 24) {
    for (size_t i = 0; i < 3; ++i) {
      const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + at + 8 * i));
      As::Put(out + (at + 8 * i) * As::kBytes, Mapped(_mm256_cvtepu8_epi32(eight), scale[i], bias[i]));
    }
  }
  PortableKernels().write_values(bytes + at, count - at, map, out + at * As::kBytes);
}

FB_AVX2 void WriteValues(const uint8_t* bytes, size_t count, const ValueMap& map, std::byte* out) {
  switch (map.dtype) {
    case DType::kFloat32:
      return WriteValuesAs<AsFloat32>(bytes, count, map, out);
    case DType::kFloat16:
      return WriteValuesAs<AsFloat16>(bytes, count, map, out);
    case DType::kBFloat16:
      return WriteValuesAs<AsBFloat16>(bytes, count, map, out);
    default:
      return PortableKernels().write_values(bytes, count, map, out);
  }
}

// clang 14 does not know __builtin_cpu_supports("f16c").
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

const Kernels* Avx2Kernels() {
  static const Kernels kernels = {Horizontal, PortableKernels().horizontal_gray, Vertical, WritePlanes,
                                  WriteValues};
  return __builtin_cpu_supports("avx2") && HasF16c() ? &kernels : nullptr;
}

}  // namespace fullbore::loader

#else

namespace fullbore::loader {
const Kernels* Avx2Kernels() { return nullptr; }
}  // namespace fullbore::loader

#endif
