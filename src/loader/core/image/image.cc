#include "loader/core/image/image.h"

#include <fmt/format.h>

#include <new>

#include "loader/core/image/codec.h"
#include "loader/core/image/format.h"
#include "loader/core/image/pixels.h"

namespace fullbore::loader {

struct ImageDecoder::State {
  std::unique_ptr<Codec> jpeg = MakeJpegCodec(), png = MakePngCodec(), webp = MakeWebpCodec();
  Codec* current = nullptr;  // null: ReadInfo has not succeeded
  ImageInfo info;
  size_t unwritten = 0;  // zeros at the end of the file, hidden from the codec

  Error Explained(Error error) const {
    if (unwritten > 0 && error.code == ErrorCode::kCorrupt) {
      error.text +=
          fmt::format("; the last {} bytes of the file are zeros, as in an unfinished copy", unwritten);
    }
    return error;
  }

  Codec* Of(ImageFormat format) {
    switch (format) {
      case ImageFormat::kJpeg:
        return jpeg.get();
      case ImageFormat::kPng:
        return png.get();
      case ImageFormat::kWebp:
        return webp.get();
    }
    CheckFailed("a known ImageFormat", __FILE__, __LINE__);
  }
};

ImageDecoder::ImageDecoder() : state_(std::make_unique<State>()) {}
ImageDecoder::~ImageDecoder() = default;

Result<ImageInfo> ImageDecoder::ReadInfo(std::span<const uint8_t> encoded, uint64_t max_pixels) {
  state_->current = nullptr;
  const auto format = RecogniseFormat(encoded);
  if (!format) return format.error();
  Codec* codec = state_->Of(*format);
  const auto written = WithoutUnwrittenTail(encoded);
  state_->unwritten = encoded.size() - written.size();
  auto info = codec->ReadInfo(written, max_pixels);
  if (!info) return state_->Explained(info.error());
  state_->current = codec;
  state_->info = *info;
  return info;
}

Result<void> ImageDecoder::Decode(const DecodeRequest& request, Pixels& out) {
  FB_CHECK(state_->current != nullptr);
  const auto wanted = ClampRegion(request.region, state_->info.width, state_->info.height);
  if (!wanted) return wanted.error();
  try {
    auto decoded = state_->current->Decode(*wanted, request, out);
    if (!decoded) return state_->Explained(decoded.error());
    return decoded;
  } catch (const std::bad_alloc&) {  // max_pixels allows more than this machine has
    return Unsupported(fmt::format("not enough memory for an image of {} x {} pixels", state_->info.width,
                                   state_->info.height),
                       "lower max_image_pixels, or scale the image down once");
  }
}

}  // namespace fullbore::loader
