// One image format's decoder, behind ImageDecoder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "loader/core/image/image.h"

namespace fullbore::loader {

class Codec {
 public:
  virtual ~Codec() = default;
  // `encoded` begins with the format's magic, and stays valid until the last Decode of it.
  virtual Result<ImageInfo> ReadInfo(std::span<const uint8_t> encoded, uint64_t max_pixels) = 0;
  // `wanted` must lie within the image that ReadInfo reported. May be called several times.
  virtual Result<void> Decode(const Rect& wanted, const DecodeRequest& request, Pixels& out) = 0;
};

std::unique_ptr<Codec> MakeJpegCodec();
std::unique_ptr<Codec> MakePngCodec();
std::unique_ptr<Codec> MakeWebpCodec();

}  // namespace fullbore::loader
