#include "loader/core/transform/random_rotation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "loader/core/transform/kind.h"

namespace fullbore::loader {
namespace {

// The source of an output position: x' = a x + b y + c, y' = d x + e y + f.
struct Affine {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

// Sines of right angles become exactly 0 or 1, so that turns by them are exact.
double Rounded15(double x) { return std::nearbyint(x * 1e15) / 1e15; }

Affine RotationBy(double degrees, Size size) {
  const double radians = -std::fmod(std::fmod(degrees, 360) + 360, 360) * std::numbers::pi / 180;
  const double cosine = Rounded15(std::cos(radians)), sine = Rounded15(std::sin(radians));
  const double x = size.width / 2.0, y = size.height / 2.0;
  return {cosine, sine, x - cosine * x - sine * y, -sine, cosine, y + sine * x - cosine * y};
}

// Pillow's 16.16 fixed point decides which neighbour is the nearest.
template <size_t kChannels>
void RotateNearest(const PixelBuffer& in, const Affine& map, PixelBuffer& out) {
  const auto fixed = [](double v) { return static_cast<int64_t>(std::floor(v * 65536 + 0.5)); };
  const int64_t step_x = fixed(map.a), step_y = fixed(map.d);
  const int64_t next_row_x = fixed(map.b), next_row_y = fixed(map.e);
  int64_t row_x = fixed(map.c + (map.a + map.b) * 0.5), row_y = fixed(map.f + (map.d + map.e) * 0.5);
  for (int y = 0; y < out.size.height; ++y, row_x += next_row_x, row_y += next_row_y) {
    int64_t from_x = row_x, from_y = row_y;
    uint8_t* to = out.row(y);
    for (int x = 0; x < out.size.width; ++x, to += kChannels, from_x += step_x, from_y += step_y) {
      const int64_t px = from_x >> 16, py = from_y >> 16;
      if (px < 0 || px >= in.size.width || py < 0 || py >= in.size.height) continue;
      std::memcpy(to, in.row(static_cast<int>(py)) + static_cast<size_t>(px) * kChannels, kChannels);
    }
  }
}

// Weights of neighbouring pixels; the first of them lies kTaps / 2 - 1 before floor(x).
template <size_t kTaps>
std::array<double, kTaps> WeightsAt(double t) {
  if constexpr (kTaps == 2) return {1 - t, t};
  // A cubic with a = -1: Pillow's for geometric transforms, other than its resize.
  const double t2 = t * t, t3 = t2 * t;
  if constexpr (kTaps == 4) return {-t + 2 * t2 - t3, 1 - 2 * t2 + t3, t + t2 - t3, -t2 + t3};
}

template <size_t kChannels, size_t kTaps>
void Interpolate(const PixelBuffer& in, double x, double y, uint8_t* to) {
  const auto left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
  const auto across = WeightsAt<kTaps>(x - left), down = WeightsAt<kTaps>(y - top);
  constexpr int kBefore = static_cast<int>(kTaps) / 2 - 1;
  std::array<size_t, kTaps> columns;
  for (size_t i = 0; i < kTaps; ++i) {
    const int column = std::clamp(left - kBefore + static_cast<int>(i), 0, in.size.width - 1);
    columns[i] = static_cast<size_t>(column) * kChannels;
  }
  std::array<double, kChannels> sums = {};
  for (size_t j = 0; j < kTaps; ++j) {
    const uint8_t* row = in.row(std::clamp(top - kBefore + static_cast<int>(j), 0, in.size.height - 1));
    for (size_t c = 0; c < kChannels; ++c) {
      double row_sum = 0;
      for (size_t i = 0; i < kTaps; ++i) row_sum += across[i] * row[columns[i] + c];
      sums[c] += down[j] * row_sum;
    }
  }
  for (size_t c = 0; c < kChannels; ++c) to[c] = static_cast<uint8_t>(std::clamp(sums[c], 0.0, 255.0));
}

template <size_t kChannels, size_t kTaps>
void RotateSmoothly(const PixelBuffer& in, const Affine& map, PixelBuffer& out) {
  for (int y = 0; y < out.size.height; ++y) {
    uint8_t* to = out.row(y);
    for (int x = 0; x < out.size.width; ++x, to += kChannels) {
      const double from_x = map.a * (x + 0.5) + map.b * (y + 0.5) + map.c;
      const double from_y = map.d * (x + 0.5) + map.e * (y + 0.5) + map.f;
      if (!(from_x >= 0 && from_x < in.size.width && from_y >= 0 && from_y < in.size.height)) continue;
      Interpolate<kChannels, kTaps>(in, from_x - 0.5, from_y - 0.5, to);
    }
  }
}

template <size_t kChannels>
void RotateChannels(const PixelBuffer& in, const Affine& map, Interpolation interpolation, PixelBuffer& out) {
  switch (interpolation) {
    case Interpolation::kNearest:
      return RotateNearest<kChannels>(in, map, out);
    case Interpolation::kBilinear:
      return RotateSmoothly<kChannels, 2>(in, map, out);
    case Interpolation::kBicubic:
      return RotateSmoothly<kChannels, 4>(in, map, out);
  }
}

void Read(MemberReader& members, RandomRotation& rotation) {
  members.Member("degrees", rotation.degrees);
  members.Enum("interpolation", rotation.interpolation, kInterpolations);
  members.Member("fill", rotation.fill);
}

Result<void> Check(const Checker& checker, const RandomRotation& rotation) {
  return checker.Interval("degrees", rotation.degrees, -Checker::kInfinity, Checker::kInfinity);
}

PixelBuffer& Change(PixelBuffer& image, PixelBuffer& other, const RandomRotation& rotation,
                    const Draws& draws) {
  Rotate(image, DrawAngle(rotation, draws), rotation.interpolation, rotation.fill, other);
  return other;
}

}  // namespace

void Rotate(const PixelBuffer& in, double degrees, Interpolation interpolation,
            const std::array<uint8_t, 3>& fill, PixelBuffer& out) {
  out.Resize(in.size, in.channels);
  const auto channels = static_cast<size_t>(in.channels);
  for (size_t i = 0, n = out.bytes(); i < n; ++i) out.storage[i] = fill[i % channels];
  const Affine map = RotationBy(degrees, in.size);
  if (channels == 1) return RotateChannels<1>(in, map, interpolation, out);
  RotateChannels<3>(in, map, interpolation, out);
}

double DrawAngle(const RandomRotation& rotation, const Draws& draws) {
  return draws.Between(0, rotation.degrees[0], rotation.degrees[1]);
}

constinit const TransformKind RandomRotation::kKind =
    PixelKind<RandomRotation, Read, Check, Change>("RandomRotation", 4);

}  // namespace fullbore::loader
