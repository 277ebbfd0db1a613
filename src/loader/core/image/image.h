// Decoding: encoded bytes to 8-bit pixels, whole or only a region of interest.
//
// Defined outcomes besides the plain case: CMYK and YCCK JPEG become RGB as in Pillow; grayscale is
// replicated; alpha is dropped; palettes are resolved; 16-bit samples keep their high byte; interlaced PNG
// and progressive JPEG are decoded whole; of an animation only the first frame is used. A truncated or
// damaged file, an empty file, an unknown magic, a known format that is not supported and dimensions beyond
// `max_pixels` are errors that say what is wrong and, if known, at which byte. docs/loader.md ("Odd and
// broken files") lists all of them, and tests/loader/corpus has a file for each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/loader.h"

namespace fullbore::loader {

struct Rect {
  int x = 0, y = 0, width = 0, height = 0;
};

enum class ImageFormat { kJpeg, kPng, kWebp };

struct ImageInfo {
  ImageFormat format = ImageFormat::kJpeg;
  int width = 0, height = 0;  // as stored: before any orientation is applied
  int orientation = 1;        // EXIF, 1 to 8
};

// Interleaved rows of 8-bit pixels, `channels` each (3: RGB, 1: gray).
struct Pixels {
  std::vector<uint8_t> data;  // at least stride * region.height; never shrinks, so keep it between images
  int channels = 3;
  size_t stride = 0;
  // Which part of the image this is, in pixels of the image scaled down by `scale`. The requested pixels are
  // bit-identical to those of the whole image at that scale; those around them may differ slightly.
  Rect region;
  int scale = 1;                            // 1, 2, 4, 8: the JPEG was decoded at 1/scale in the DCT
  int scaled_width = 0, scaled_height = 0;  // of the whole image at that scale
};

struct DecodeRequest {
  Rect region;        // in full-size pixels; the result covers at least this, and may cover more
  int max_scale = 1;  // a JPEG may be decoded at 1/max_scale at most
  ImageMode mode = ImageMode::kRgb;
  bool fast_dct = false;
};

// A decoder for one thread: keeps the state of the libraries between images. Not thread-safe.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();

  // Reads the header only; `encoded` stays valid until the last Decode. kCorrupt: not an image, or
  // truncated before its size; kUnsupported: a format or kind that is not decoded, or more than max_pixels.
  Result<ImageInfo> ReadInfo(std::span<const uint8_t> encoded, uint64_t max_pixels);

  // Decodes what `request` needs of the image for which ReadInfo last succeeded.
  // kCorrupt if the data needed for the region ends early or is damaged: never
  // returns made-up pixels, as far as the format makes damage detectable.
  // kInvalidArgument: no pixel of the region is in the image.
  Result<void> Decode(const DecodeRequest& request, Pixels& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fullbore::loader
