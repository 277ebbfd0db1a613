// The one part of EXIF that matters for pixels: the orientation.
#pragma once

#include <cstdint>
#include <span>

namespace fullbore::loader {

// From a TIFF structure ("II*\0..." or "MM\0*..."), the format of EXIF. 1, the default, if the tag is missing
// or not 1 to 8, or the structure is damaged: metadata never makes a sample bad.
int TiffOrientation(std::span<const uint8_t> tiff);

// The same, after the prefix "Exif\0\0" that JPEG and some WebP files have. 0: no EXIF at all.
int ExifOrientation(std::span<const uint8_t> segment);

}  // namespace fullbore::loader
