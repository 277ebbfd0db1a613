// WebP, using libwebp. Of an animation only the first frame is used, on a black canvas if it is smaller than
// that.
#include <fmt/format.h>
#include <webp/decode.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "loader/core/image/byte_order.h"
#include "loader/core/image/codec.h"
#include "loader/core/image/exif.h"
#include "loader/core/image/pixels.h"

namespace fullbore::loader {
namespace {

constexpr size_t kRiffHeaderBytes = 12;   // "RIFF", size, "WEBP"
constexpr size_t kChunkHeaderBytes = 8;   // type, size
constexpr size_t kFrameHeaderBytes = 16;  // of ANMF: position, size, duration, flags
// Smooth upsampling of chroma looks one sample to either side; at a crop's edge it would see the edge.
constexpr int kUpsamplingMargin = 2;

// What the container says beyond what WebPGetFeatures does.
struct Container {
  int orientation = 1;
  std::optional<size_t> first_frame;  // offset of the data of the first ANMF chunk
  size_t first_frame_bytes = 0;       // as much as there is
};

Container ReadContainer(std::span<const uint8_t> webp) {
  Container container;
  size_t offset = kRiffHeaderBytes;
  while (offset <= webp.size() && webp.size() - offset >= kChunkHeaderBytes) {
    const std::string_view type(reinterpret_cast<const char*>(webp.data()) + offset, 4);
    const size_t size = Little32(webp.data() + offset + 4);
    const size_t data = offset + kChunkHeaderBytes;
    const auto there = webp.subspan(data, std::min(size, webp.size() - data));
    if (type == "ANMF" && !container.first_frame) {
      container.first_frame = data;
      container.first_frame_bytes = there.size();
    }
    if (type == "EXIF" && there.size() == size) {
      // The standard has bare TIFF here; some writers leave JPEG's mark in front of it.
      const int marked = ExifOrientation(there);
      container.orientation = marked != 0 ? marked : TiffOrientation(there);
    }
    offset = data + size + size % 2;
  }
  return container;
}

class WebpCodec : public Codec {
 public:
  Result<ImageInfo> ReadInfo(std::span<const uint8_t> encoded, uint64_t max_pixels) override;
  Result<void> Decode(const Rect& wanted, const DecodeRequest& request, Pixels& out) override;

 private:
  Result<void> DecodeStill(const Rect& wanted, Pixels& out);
  Result<void> DecodeFirstFrame(Pixels& out);
  Error Failed(VP8StatusCode status) const;

  std::span<const uint8_t> encoded_;
  int width_ = 0, height_ = 0;
  bool animated_ = false;
  Container container_;
};

Error WebpCodec::Failed(VP8StatusCode status) const {
  const uint64_t promised = encoded_.size() < kRiffHeaderBytes ? 0 : uint64_t{Little32(&encoded_[4])} + 8;
  if (promised > encoded_.size()) {
    return Corrupt(fmt::format("the WebP ends at byte {} of the {} that its header announces",
                               encoded_.size(), promised));
  }
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return Corrupt(
          fmt::format("the WebP's image data ends too early, in a file of {} bytes", encoded_.size()));
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return Unsupported("the WebP uses a feature that libwebp does not support", "convert it once");
    case VP8_STATUS_OUT_OF_MEMORY:
      return Unsupported("libwebp ran out of memory on this WebP", "");
    default:
      return Corrupt(fmt::format("the WebP of {} bytes is damaged", encoded_.size()));
  }
}

Result<ImageInfo> WebpCodec::ReadInfo(std::span<const uint8_t> encoded, uint64_t max_pixels) {
  encoded_ = encoded;
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(encoded.data(), encoded.size(), &features);
  if (status != VP8_STATUS_OK) return Failed(status);
  const auto width = static_cast<uint64_t>(features.width), height = static_cast<uint64_t>(features.height);
  if (auto size = CheckSize("WebP", width, height, max_pixels); !size) return size.error();
  width_ = features.width;
  height_ = features.height;
  animated_ = features.has_animation != 0;
  container_ = ReadContainer(encoded);
  return ImageInfo{ImageFormat::kWebp, width_, height_, container_.orientation};
}

Result<void> WebpCodec::Decode(const Rect& wanted, const DecodeRequest& request, Pixels& out) {
  out.scale = 1;
  out.scaled_width = width_;
  out.scaled_height = height_;
  auto decoded = animated_ ? DecodeFirstFrame(out) : DecodeStill(wanted, out);
  if (decoded && request.mode == ImageMode::kGray) RgbToGray(out);
  return decoded;
}

// Writes to the RGB rows of `out`, from `to` on.
VP8StatusCode DecodeInto(std::span<const uint8_t> bytes, const Rect* crop, uint8_t* to, size_t room,
                         size_t stride) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return VP8_STATUS_INVALID_PARAM;
  if (crop != nullptr) {
    config.options.use_cropping = 1;
    config.options.crop_left = crop->x;
    config.options.crop_top = crop->y;
    config.options.crop_width = crop->width;
    config.options.crop_height = crop->height;
  }
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = to;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = room;
  return WebPDecode(bytes.data(), bytes.size(), &config);
}

Result<void> WebpCodec::DecodeStill(const Rect& wanted, Pixels& out) {
  // libwebp rounds odd corners down to even ones.
  const int left = std::max(0, wanted.x - kUpsamplingMargin) & ~1;
  const int top = std::max(0, wanted.y - kUpsamplingMargin) & ~1;
  const int right = std::min(width_, wanted.x + wanted.width + kUpsamplingMargin);
  const int bottom = std::min(height_, wanted.y + wanted.height + kUpsamplingMargin);
  PrepareRows(out, {left, top, right - left, bottom - top}, 3);
  const size_t room = out.stride * static_cast<size_t>(out.region.height);
  const VP8StatusCode status = DecodeInto(encoded_, &out.region, out.data.data(), room, out.stride);
  if (status != VP8_STATUS_OK) return Failed(status);
  return {};
}

Result<void> WebpCodec::DecodeFirstFrame(Pixels& out) {
  if (!container_.first_frame || container_.first_frame_bytes < kFrameHeaderBytes) {
    return Corrupt(fmt::format("the animated WebP of {} bytes has no frame", encoded_.size()));
  }
  const auto chunk = encoded_.subspan(*container_.first_frame, container_.first_frame_bytes);
  const uint64_t x = uint64_t{Little24(&chunk[0])} * 2, y = uint64_t{Little24(&chunk[3])} * 2;
  const uint64_t width = Little24(&chunk[6]) + 1, height = Little24(&chunk[9]) + 1;
  const auto frame = chunk.subspan(kFrameHeaderBytes);
  WebPBitstreamFeatures features;
  const VP8StatusCode header = WebPGetFeatures(frame.data(), frame.size(), &features);
  if (header != VP8_STATUS_OK) return Failed(header);
  if (x + width > static_cast<uint64_t>(width_) || y + height > static_cast<uint64_t>(height_) ||
      features.width != static_cast<int>(width) || features.height != static_cast<int>(height)) {
    return Corrupt(fmt::format(
        "the animated WebP's first frame ({} x {} at ({}, {})) does not match its canvas, {} x {}", width,
        height, x, y, width_, height_));
  }
  PrepareRows(out, {0, 0, width_, height_}, 3);
  const size_t room = out.stride * static_cast<size_t>(height_);
  if (width != static_cast<uint64_t>(width_) || height != static_cast<uint64_t>(height_)) {
    std::memset(out.data.data(), 0, room);
  }
  const size_t start = y * out.stride + x * 3;
  const VP8StatusCode status = DecodeInto(frame, nullptr, out.data.data() + start, room - start, out.stride);
  if (status != VP8_STATUS_OK) return Failed(status);
  return {};
}

}  // namespace

std::unique_ptr<Codec> MakeWebpCodec() { return std::make_unique<WebpCodec>(); }

}  // namespace fullbore::loader
