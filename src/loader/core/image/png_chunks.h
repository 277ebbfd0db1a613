// Reads the chunks of a PNG without libpng: the size before anything is allocated, and the checksums of all
// data that pixels depend on before any pixel is decoded, so that a decode can stop early and still be known
// good.
#pragma once

#include <cstdint>
#include <span>

#include "loader/core/image/image.h"

namespace fullbore::loader {

struct PngHeader {
  uint32_t width = 0, height = 0;
  int orientation = 1;  // from the eXIf chunk, wherever it is
};

// `png` begins with PNG's magic.
Result<PngHeader> ReadPngHeader(std::span<const uint8_t> png);

// kCorrupt: a chunk that pixels depend on is truncated, or its checksum is wrong. What follows the image data
// is ignored.
Result<void> CheckPngChunks(std::span<const uint8_t> png);

}  // namespace fullbore::loader
