// A whole 8-bit image between two passes, with rows without gaps and room after the last one, so that a row
// can be read slightly beyond its end.
#pragma once

#include <cstdint>
#include <vector>

#include "loader/core/transform/geometry.h"
#include "loader/core/transform/resampler.h"

namespace fullbore::loader {

struct PixelBuffer {
  Size size;
  int channels = 3;
  std::vector<uint8_t> storage;

  void Resize(Size new_size, int new_channels) {
    size = new_size;
    channels = new_channels;
    storage.resize(bytes() + kRowSlack);
  }
  size_t row_bytes() const { return static_cast<size_t>(size.width) * static_cast<size_t>(channels); }
  size_t bytes() const { return row_bytes() * static_cast<size_t>(size.height); }
  uint8_t* row(int y) { return storage.data() + static_cast<size_t>(y) * row_bytes(); }
  const uint8_t* row(int y) const { return storage.data() + static_cast<size_t>(y) * row_bytes(); }

  ImageView view() const {
    return {storage.data(), storage.size(), row_bytes(), channels, {0, 0, size.width, size.height}, 1};
  }
};

}  // namespace fullbore::loader
