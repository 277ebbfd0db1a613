// What the decoders of all formats share: checking sizes, preparing rows, and converting colours in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "loader/core/image/image.h"

namespace fullbore::loader {

// kUnsupported, with the numbers, for more than `max_pixels`; kCorrupt for no pixels at all.
Result<void> CheckSize(const char* format, uint64_t width, uint64_t height, uint64_t max_pixels);

// The part of `region` inside the image. kInvalidArgument if there is none.
Result<Rect> ClampRegion(const Rect& region, int width, int height);

// Makes room for region.height rows of region.width pixels of `bytes_per_pixel`. Never shrinks `data`: a
// vector that grows again would be filled with zeros again.
void PrepareRows(Pixels& out, const Rect& region, int bytes_per_pixel);

// In place, all rows of `out`: from 4 (C, M, Y, K as Adobe stores them: inverted) or 3 interleaved bytes a
// pixel to fewer. `stride` and `channels` follow. The arithmetic is Pillow's convert("RGB") and convert("L").
void CmykToRgb(Pixels& out);
void RgbToGray(Pixels& out);

Error Corrupt(std::string text);
Error Unsupported(std::string text, std::string hint);

}  // namespace fullbore::loader
