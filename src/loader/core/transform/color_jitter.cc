#include "loader/core/transform/color_jitter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "loader/core/transform/kind.h"

namespace fullbore::loader {
namespace {

// ITU-R 601-2 luma in 16-bit fixed point, as Pillow's convert("L").
uint8_t LumaOf(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

// From `base` (factor 0) through `value` (factor 1) and beyond; fractions are truncated.
uint8_t Blended(int base, int value, float factor) {
  const float mixed = static_cast<float>(base) + factor * static_cast<float>(value - base);
  return static_cast<uint8_t>(std::clamp(mixed, 0.0f, 255.0f));
}

void BlendWith(PixelBuffer& image, int base, double factor) {
  std::array<uint8_t, 256> table;
  for (int v = 0; v < 256; ++v) {
    table[static_cast<size_t>(v)] = Blended(base, v, static_cast<float>(factor));
  }
  uint8_t* bytes = image.storage.data();
  for (size_t i = 0, n = image.bytes(); i < n; ++i) bytes[i] = table[bytes[i]];
}

int MeanGray(const PixelBuffer& image) {
  uint64_t sum = 0;
  const uint8_t* bytes = image.storage.data();
  const auto channels = static_cast<size_t>(image.channels);
  const size_t pixels = image.bytes() / channels;
  for (size_t i = 0; i < pixels; ++i) sum += channels == 3 ? LumaOf(bytes + 3 * i) : bytes[i];
  return static_cast<int>(std::lround(static_cast<double>(sum) / static_cast<double>(pixels)));
}

// Hue, saturation and value are rounded to 8 bits in between, as in Pillow's HSV images; single and double
// precision alternate as they do there, because that decides which byte a value on an edge becomes.
uint8_t HueOf(int r, int g, int b, int highest, int range) {
  const auto share = [&](int c) { return static_cast<float>(highest - c) / static_cast<float>(range); };
  float hue = 0;
  if (r == highest) {
    hue = share(b) - share(g);
  } else if (g == highest) {
    hue = static_cast<float>(2.0 + share(r) - share(b));
  } else {
    hue = static_cast<float>(4.0 + share(g) - share(r));
  }
  double turns = hue / 6.0 + 1.0;
  if (turns >= 1) turns -= 1;
  return static_cast<uint8_t>(std::min(255, static_cast<int>(static_cast<float>(turns) * 255.0)));
}

void FromHsv(uint8_t hue, uint8_t saturation, uint8_t value, uint8_t* rgb) {
  const double sixths = hue * 6.0 / 255.0;
  const int sector = static_cast<int>(sixths);
  const auto within = static_cast<float>(sixths - sector), s = static_cast<float>(saturation / 255.0);
  const auto byte = [&](double share) {
    return static_cast<uint8_t>(std::clamp(value * share + 0.5, 0.0, 255.0));
  };
  const uint8_t p = byte(1.0 - s), q = byte(1.0 - s * within), t = byte(1.0 - s * (1.0 - within));
  const uint8_t order[6][3] = {{value, t, p}, {q, value, p}, {p, value, t},
                               {p, q, value}, {t, p, value}, {value, p, q}};
  std::copy_n(order[sector % 6], 3, rgb);
}

void ShiftHue(uint8_t* rgb, uint8_t shift) {
  const int r = rgb[0], g = rgb[1], b = rgb[2];
  const int highest = std::max({r, g, b}), range = highest - std::min({r, g, b});
  if (range == 0) return;  // gray has no hue
  const auto saturation =
      static_cast<uint8_t>(static_cast<float>(range) / static_cast<float>(highest) * 255.0);
  const auto hue = static_cast<uint8_t>(HueOf(r, g, b, highest, range) + shift);
  FromHsv(hue, saturation, static_cast<uint8_t>(highest), rgb);
}

void Read(MemberReader& members, ColorJitter& jitter) {
  members.Member("brightness", jitter.brightness);
  members.Member("contrast", jitter.contrast);
  members.Member("saturation", jitter.saturation);
  members.Member("hue", jitter.hue);
}

Result<void> Check(const Checker& checker, const ColorJitter& jitter) {
  return Checker::First({checker.Interval("brightness", jitter.brightness, 0, Checker::kInfinity),
                         checker.Interval("contrast", jitter.contrast, 0, Checker::kInfinity),
                         checker.Interval("saturation", jitter.saturation, 0, Checker::kInfinity),
                         checker.Interval("hue", jitter.hue, -0.5, 0.5)});
}

PixelBuffer& Change(PixelBuffer& image, PixelBuffer&, const ColorJitter& jitter, const Draws& draws) {
  Apply(DrawJitter(jitter, draws), image);
  return image;
}

}  // namespace

void AdjustBrightness(PixelBuffer& image, double factor) { BlendWith(image, 0, factor); }

void AdjustContrast(PixelBuffer& image, double factor) { BlendWith(image, MeanGray(image), factor); }

void AdjustSaturation(PixelBuffer& image, double factor) {
  if (image.channels == 1) return;
  uint8_t* rgb = image.storage.data();
  const auto alpha = static_cast<float>(factor);
  for (uint8_t* end = rgb + image.bytes(); rgb < end; rgb += 3) {
    const int gray = LumaOf(rgb);
    for (size_t c = 0; c < 3; ++c) rgb[c] = Blended(gray, rgb[c], alpha);
  }
}

void AdjustHue(PixelBuffer& image, double shift) {
  if (image.channels == 1) return;
  // Truncated towards 0, then modulo 256: NumPy's conversion, which torchvision relies on.
  const auto steps = static_cast<uint8_t>(static_cast<int>(shift * 255));
  uint8_t* rgb = image.storage.data();
  for (uint8_t* end = rgb + image.bytes(); rgb < end; rgb += 3) ShiftHue(rgb, steps);
}

void Apply(const JitterDraw& drawn, PixelBuffer& image) {
  for (const JitterKind kind : drawn.order) {
    const std::optional<double>& factor = drawn.factors[static_cast<size_t>(kind)];
    if (!factor) continue;
    switch (kind) {
      case JitterKind::kBrightness:
        AdjustBrightness(image, *factor);
        break;
      case JitterKind::kContrast:
        AdjustContrast(image, *factor);
        break;
      case JitterKind::kSaturation:
        AdjustSaturation(image, *factor);
        break;
      case JitterKind::kHue:
        AdjustHue(image, *factor);
        break;
    }
  }
}

JitterDraw DrawJitter(const ColorJitter& jitter, const Draws& draws) {
  JitterDraw drawn;
  const std::array<double, 2> intervals[4] = {jitter.brightness, jitter.contrast, jitter.saturation,
                                              jitter.hue};
  for (int i = 0; i < 4; ++i) {
    const auto at = static_cast<size_t>(i);
    const double neutral = at == static_cast<size_t>(JitterKind::kHue) ? 0 : 1;
    const auto [low, high] = intervals[at];
    if (low != neutral || high != neutral) drawn.factors[at] = draws.Between(i, low, high);
    drawn.order[at] = static_cast<JitterKind>(i);
  }
  for (int last = 3; last > 0; --last) {  // Fisher and Yates
    std::swap(drawn.order[static_cast<size_t>(last)],
              drawn.order[static_cast<size_t>(draws.Below(3 + last, last + 1))]);
  }
  return drawn;
}

constinit const TransformKind ColorJitter::kKind =
    PixelKind<ColorJitter, Read, Check, Change>("ColorJitter", 3);

}  // namespace fullbore::loader
