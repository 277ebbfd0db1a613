// Which image format some bytes have, by the bytes and never by the file name.
#pragma once

#include <cstdint>
#include <span>

#include "loader/core/image/image.h"

namespace fullbore::loader {

// kUnsupported: a known format that is not decoded (GIF, TIFF, HEIC, ...); the error names it and says what
// to do. kCorrupt: no bytes, or not an image.
Result<ImageFormat> RecogniseFormat(std::span<const uint8_t> encoded);

// Strips zeros from the end if there are 512 or more: the smallest gap that storage leaves when a file was
// allocated at full size but copied only in part. JPEG and WebP have no checksum, so zeros would decode to
// something; a file that ends early is noticed. No valid image loses anything, because none ends with zeros.
std::span<const uint8_t> WithoutUnwrittenTail(std::span<const uint8_t> encoded);

}  // namespace fullbore::loader
