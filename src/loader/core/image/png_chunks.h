// A PNG's chunks, read without libpng: the size before anything is allocated, and the checksums of all that
// pixels depend on before any pixel is decoded. So a region can end early and still be known to be undamaged.
#pragma once

#include <cstdint>
#include <span>

#include "loader/core/image/image.h"

namespace fullbore::loader {

struct PngHeader {
  uint32_t width = 0, height = 0;
  int orientation = 1;  // of the chunk eXIf, wherever it stands
};

// `png` begins with PNG's magic.
Result<PngHeader> ReadPngHeader(std::span<const uint8_t> png);

// kCorrupt: a chunk that pixels depend on is cut off, or its checksum is wrong. What follows the image data
// does not count.
Result<void> CheckPngChunks(std::span<const uint8_t> png);

}  // namespace fullbore::loader
