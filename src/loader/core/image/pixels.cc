#include "loader/core/image/pixels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace fullbore::loader {

Result<void> CheckSize(const char* format, uint64_t width, uint64_t height, uint64_t max_pixels) {
  if (width == 0 || height == 0) {
    return Corrupt(fmt::format("the {} says it is {} x {} pixels", format, width, height));
  }
  if (width <= max_pixels / height) return {};
  return Unsupported(
      fmt::format("the {} is {} x {} pixels, more than the {} pixels allowed (against decompression bombs)",
                  format, width, height, FormatCount(static_cast<double>(max_pixels))),
      "if the image is genuine, raise max_image_pixels or scale it down once");
}

Result<Rect> ClampRegion(const Rect& region, int width, int height) {
  const int64_t left = std::max(region.x, 0), top = std::max(region.y, 0);
  const int64_t right = std::min<int64_t>(int64_t{region.x} + region.width, width);
  const int64_t bottom = std::min<int64_t>(int64_t{region.y} + region.height, height);
  if (left >= right || top >= bottom) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the region {} x {} at ({}, {}) lies outside an image of {} x {}", region.width,
                             region.height, region.x, region.y, width, height),
                 ""};
  }
  return Rect{static_cast<int>(left), static_cast<int>(top), static_cast<int>(right - left),
              static_cast<int>(bottom - top)};
}

void PrepareRows(Pixels& out, const Rect& region, int bytes_per_pixel) {
  out.region = region;
  out.channels = bytes_per_pixel;
  out.stride = static_cast<size_t>(region.width) * static_cast<size_t>(bytes_per_pixel);
  const size_t needed = out.stride * static_cast<size_t>(region.height);
  if (out.data.size() < needed) out.data.resize(needed);
}

void CmykToRgb(Pixels& out) {
  const size_t pixels = out.stride / 4 * static_cast<size_t>(out.region.height);
  const auto times = [](int a, int b) {  // a * b / 255, rounded
    const int product = a * b + 128;
    return ((product >> 8) + product) >> 8;
  };
  const uint8_t* from = out.data.data();
  uint8_t* to = out.data.data();
  for (size_t i = 0; i < pixels; ++i, from += 4, to += 3) {
    const int white = from[3];
    for (int c = 0; c < 3; ++c) {
      to[c] = static_cast<uint8_t>(std::clamp(white - times(255 - from[c], white), 0, 255));
    }
  }
  out.channels = 3;
  out.stride = out.stride / 4 * 3;
}

void RgbToGray(Pixels& out) {
  const size_t pixels = out.stride / 3 * static_cast<size_t>(out.region.height);
  const uint8_t* from = out.data.data();
  uint8_t* to = out.data.data();
  for (size_t i = 0; i < pixels; ++i, from += 3) {
    to[i] = static_cast<uint8_t>((from[0] * 19595 + from[1] * 38470 + from[2] * 7471 + 0x8000) >> 16);
  }
  out.channels = 1;
  out.stride /= 3;
}

Error Corrupt(std::string text) { return {ErrorCode::kCorrupt, std::move(text), ""}; }

Error Unsupported(std::string text, std::string hint) {
  return {ErrorCode::kUnsupported, std::move(text), std::move(hint)};
}

}  // namespace fullbore::loader
