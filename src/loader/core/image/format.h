// Which kind of image some bytes are: by the bytes, never by a file's name.
#pragma once

#include <cstdint>
#include <span>

#include "loader/core/image/image.h"

namespace fullbore::loader {

// kUnsupported names the format where it is one that is known but not decoded (GIF, TIFF, HEIC, ...), with
// the next step; kCorrupt: no bytes, or no image at all.
Result<ImageFormat> RecogniseFormat(std::span<const uint8_t> encoded);

// Without the zeros at the end, where there are 512 or more: the least that storage leaves unwritten when a
// file was announced with its size and then copied only in part. JPEG and WebP have no checksum, so zeros
// would decode to something; as a file that ends they are noticed. No image loses anything: its last bytes
// are not zeros.
std::span<const uint8_t> WithoutUnwrittenTail(std::span<const uint8_t> encoded);

}  // namespace fullbore::loader
