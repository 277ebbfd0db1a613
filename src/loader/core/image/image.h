// Decoding: encoded bytes to 8-bit pixels, whole or only a region of interest.
//
// Outcomes that are defined, beside the plain case: CMYK and YCCK JPEG become RGB as Pillow does it;
// grayscale is replicated; alpha is dropped; palettes are resolved; 16-bit samples keep their high byte;
// interlaced PNG and progressive JPEG decode whole; of an animation the first frame counts. A truncated or
// damaged file, a file of zero bytes, an unknown magic, a known format that is not decoded and dimensions
// beyond `max_pixels` are errors that say what and, where it is known, at which byte. All of it is listed in
// docs/loader.md ("Odd and broken files"), with a file each in tests/loader/corpus.
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
  // What of the image this is: in pixels of the image scaled down by `scale`. Those that were asked for are,
  // to the bit, the ones of the whole image at that scale; those around them may differ a little.
  Rect region;
  int scale = 1;                            // 1, 2, 4, 8: the JPEG was decoded at 1/scale in the DCT
  int scaled_width = 0, scaled_height = 0;  // of the whole image at that scale
};

struct DecodeRequest {
  Rect region;        // wanted, in full-size pixels; the result covers at least this, and may cover more
  int max_scale = 1;  // a JPEG may be decoded at 1/max_scale at most
  ImageMode mode = ImageMode::kRgb;
  bool fast_dct = false;
};

// One thread's decoder: keeps what the libraries need between images. Not safe to share.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();

  // Reads the header only; `encoded` stays valid until the last Decode. kCorrupt: not an image, or cut off
  // before its size; kUnsupported: a format or kind that is not decoded, or more than max_pixels.
  Result<ImageInfo> ReadInfo(std::span<const uint8_t> encoded, uint64_t max_pixels);

  // Decodes what `request` needs of the image that ReadInfo was last called with,
  // and succeeded for. kCorrupt where the data needed for the region ends early or
  // is damaged: pixels that are made up are never returned, as far as the format
  // lets anybody notice. kInvalidArgument: no pixel of the region is in the image.
  Result<void> Decode(const DecodeRequest& request, Pixels& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fullbore::loader
