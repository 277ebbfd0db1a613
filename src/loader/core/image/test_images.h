// Images made for tests: content with edges and colour in every block, encoded in the ways that matter.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "loader/core/image/image.h"

struct jpeg_compress_struct;

namespace fullbore::loader::testing {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kMaxPixels = 1'000'000;

struct Picture {
  int width = 0, height = 0, channels = 3;
  Bytes pixels;
};
Picture MakePicture(int width, int height, int channels = 3);

// `adjust` is called before compression starts: sampling factors, progression, restart intervals.
using AdjustJpeg = std::function<void(jpeg_compress_struct&)>;
Bytes EncodeJpeg(const Picture& picture, int quality, const AdjustJpeg& adjust = nullptr);
Bytes EncodePng(const Picture& picture, bool interlaced);
Bytes EncodeWebp(const Picture& picture, bool lossless);

struct Decoded {
  bool ok = false;
  Error error;
  ImageInfo info;
  Pixels pixels;
};
// With a decoder and pixels of its own; memory that the decoder does not write is left at `fill`.
Decoded Decode(std::span<const uint8_t> encoded, const DecodeRequest& request, uint8_t fill = 0);
Decoded DecodeAll(std::span<const uint8_t> encoded, uint8_t fill = 0);

// The channels of the pixel at (x, y) of the (scaled) image, which lies in the region decoded.
std::vector<int> PixelAt(const Pixels& pixels, int x, int y);

// The first pixel of `region` (of the scaled image) in which both differ, as text; empty: none.
std::string FirstDifference(const Pixels& a, const Pixels& b, const Rect& region);

// Cuts `encoded` at every length. A cut file either fails as kCorrupt, naming an offset or a size, or has the
// pixels of the whole one: none that were made up. Returns how many lengths gave pixels.
int CutEverywhere(const Bytes& encoded, const DecodeRequest& request);

Bytes ReadFile(const std::string& path);
std::string CorpusDirectory();

}  // namespace fullbore::loader::testing
