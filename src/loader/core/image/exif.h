// The one thing of EXIF that matters to pixels: which way up they are.
#pragma once

#include <cstdint>
#include <span>

namespace fullbore::loader {

// Of a TIFF structure ("II*\0..." or "MM\0*..."), which is what EXIF is. 1, the plain one, where the tag is
// missing, out of 1 to 8, or the structure damaged: metadata never makes a picture a bad one.
int TiffOrientation(std::span<const uint8_t> tiff);

// The same with the "Exif\0\0" in front that JPEG, and some WebP, puts there. 0: no EXIF at all.
int ExifOrientation(std::span<const uint8_t> segment);

}  // namespace fullbore::loader
