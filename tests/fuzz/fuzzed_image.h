// What holds for every input that claims to be an image, whatever its format: it decodes or fails, and if it
// decodes, the pixels do not depend on what was decoded before, on what the memory held, or on whether the
// whole image or a region was requested.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "fullbore/result.h"
#include "loader/core/image/image.h"

namespace fullbore::fuzz {

// Small: a few bytes can be a large image, and decompression is not what is tested.
constexpr uint64_t kMaxPixels = 1 << 17;

inline bool DecodeInto(loader::ImageDecoder& decoder, std::span<const uint8_t> bytes,
                       const loader::DecodeRequest& request, uint8_t fill, loader::Pixels& pixels) {
  std::fill(pixels.data.begin(), pixels.data.end(), fill);
  const auto info = decoder.ReadInfo(bytes, kMaxPixels);
  if (!info) return false;
  FB_CHECK(static_cast<uint64_t>(info->width) * static_cast<uint64_t>(info->height) <= kMaxPixels);
  FB_CHECK(info->orientation >= 1 && info->orientation <= 8);
  return decoder.Decode(request, pixels).ok();
}

inline const uint8_t* At(const loader::Pixels& pixels, int x, int y) {
  const size_t at = static_cast<size_t>(y - pixels.region.y) * pixels.stride +
                    static_cast<size_t>(x - pixels.region.x) * static_cast<size_t>(pixels.channels);
  FB_CHECK(at + static_cast<size_t>(pixels.channels) <= pixels.data.size());
  return pixels.data.data() + at;
}

// `region` is in full-size pixels, and lies in both.
inline void CheckSame(const loader::Pixels& a, const loader::Pixels& b, const loader::Rect& region) {
  FB_CHECK(a.scale == b.scale && a.channels == b.channels);
  const int right = std::min((region.x + region.width + a.scale - 1) / a.scale, a.scaled_width);
  const int bottom = std::min((region.y + region.height + a.scale - 1) / a.scale, a.scaled_height);
  for (int y = region.y / a.scale; y < bottom; ++y) {
    for (int x = region.x / a.scale; x < right; ++x) {
      FB_CHECK(std::memcmp(At(a, x, y), At(b, x, y), static_cast<size_t>(a.channels)) == 0);
    }
  }
}

inline void FuzzImage(std::span<const uint8_t> bytes) {
  static loader::ImageDecoder used;
  static loader::Pixels whole, again, part;
  // The request is taken from the last bytes, which most formats ignore.
  const auto choice = [&](size_t i) { return bytes.size() > i ? bytes[bytes.size() - 1 - i] : 0; };
  loader::DecodeRequest request;
  request.region = {0, 0, 1 << 20, 1 << 20};
  request.max_scale = 1 << (choice(0) & 3);
  request.mode = (choice(0) & 4) != 0 ? loader::ImageMode::kGray : loader::ImageMode::kRgb;
  request.fast_dct = (choice(0) & 8) != 0;
  const bool ok = DecodeInto(used, bytes, request, 0x00, whole);
  loader::ImageDecoder fresh;
  FB_CHECK(DecodeInto(fresh, bytes, request, 0xFF, again) == ok);
  if (!ok) return;
  const auto info = used.ReadInfo(bytes, kMaxPixels);
  FB_CHECK(info.ok());
  CheckSame(whole, again, {0, 0, info->width, info->height});
  request.region = {choice(1) % info->width, choice(2) % info->height, 1, 1};
  request.region.width = std::min(1 + choice(3) % 64, info->width - request.region.x);
  request.region.height = std::min(1 + choice(4) % 64, info->height - request.region.y);
  FB_CHECK(DecodeInto(fresh, bytes, request, 0xFF, part));
  CheckSame(whole, part, request.region);
}

}  // namespace fullbore::fuzz
