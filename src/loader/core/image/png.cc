// PNG, using libpng. Rows above a region have to be decoded, because each is stored relative to the previous
// one; rows below it are not. An interlaced image is decoded whole.
#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>

#include "loader/core/image/codec.h"
#include "loader/core/image/pixels.h"
#include "loader/core/image/png_chunks.h"

namespace fullbore::loader {
namespace {

// libpng's state for one file. As with libjpeg, an error is a longjmp: jpeg_session.h has the consequences.
// Lives in the frame that calls Guarded(), which no longjmp leaves.
struct PngSession {
  PngSession() = default;
  ~PngSession() { png_destroy_read_struct(&png, &info, nullptr); }
  PngSession(const PngSession&) = delete;
  PngSession& operator=(const PngSession&) = delete;

  png_struct* png = nullptr;
  png_info* info = nullptr;
  std::jmp_buf escape;
  const uint8_t* next = nullptr;
  size_t left = 0;
  bool ended = false;
  char message[200] = "";

  int color_type = 0;
  int passes = 1;
  int row = 0;  // being decoded
};

template <typename Calls>
[[gnu::noinline]] bool Guarded(PngSession& session, const Calls& calls) {
  static_assert(std::is_trivially_destructible_v<Calls>);
  if (setjmp(session.escape) != 0) return false;
  calls();
  return true;
}

[[noreturn]] void OnError(png_struct* png, const char* message) {
  auto& session = *static_cast<PngSession*>(png_get_error_ptr(png));
  std::snprintf(session.message, sizeof session.message, "%s", message);
  std::longjmp(session.escape, 1);
}

// Of metadata, which is ignored, or about data after the last pixel.
void OnWarning(png_struct*, const char*) {}

void OnRead(png_struct* png, uint8_t* to, size_t bytes) {
  auto& session = *static_cast<PngSession*>(png_get_io_ptr(png));
  if (bytes > session.left) {
    session.ended = true;
    png_error(png, "the file ends");
  }
  std::memcpy(to, session.next, bytes);
  session.next += bytes;
  session.left -= bytes;
}

// Inside Guarded: to 8-bit samples without alpha; palettes stay indices, one a byte.
void Open(PngSession& session, bool gray) {
  session.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &session, OnError, OnWarning);
  if (session.png == nullptr) return;
  png_struct* png = session.png;
  session.info = png_create_info_struct(png);
  if (session.info == nullptr) png_error(png, "out of memory");
  png_set_read_fn(png, &session, OnRead);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // max_pixels has been checked
  // CheckPngChunks has seen to the checksums. Metadata is
  // not even inflated: a few bytes of it can be gigabytes.
  png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, session.info);
  session.color_type = png_get_color_type(png, session.info);
  if (session.color_type == PNG_COLOR_TYPE_PALETTE) {
    png_set_packing(png);
  } else {
    png_set_strip_16(png);
    png_set_expand_gray_1_2_4_to_8(png);
    png_set_strip_alpha(png);
    if (!gray) png_set_gray_to_rgb(png);
  }
  session.passes = png_set_interlace_handling(png);
  png_read_update_info(png, session.info);
}

// Inside Guarded. Rows before `first` are decoded into nothing.
void ReadRows(PngSession& session, uint8_t* to, size_t stride, int first, int rows) {
  for (int pass = 0; pass < session.passes; ++pass) {
    for (session.row = 0; session.row < first + rows; ++session.row) {
      uint8_t* row = session.row < first ? nullptr : to + static_cast<size_t>(session.row - first) * stride;
      png_read_row(session.png, row, nullptr);
    }
  }
}

// In place: turns the indices at the beginning of each row into pixels, from last to first.
Result<void> ApplyPalette(const PngSession& session, Pixels& out) {
  png_color* palette = nullptr;
  int colours = 0;
  png_get_PLTE(session.png, session.info, &palette, &colours);
  for (int y = 0; y < out.region.height; ++y) {
    uint8_t* row = out.data.data() + static_cast<size_t>(y) * out.stride;
    for (int x = out.region.width - 1; x >= 0; --x) {
      const int index = row[x];
      if (index >= colours) {
        return Corrupt(fmt::format("the PNG's pixel ({}, {}) has colour {} in a palette of {}", x,
                                   y + out.region.y, index, colours));
      }
      const png_color colour = palette[index];
      uint8_t* pixel = row + static_cast<ptrdiff_t>(x) * 3;
      pixel[0] = colour.red, pixel[1] = colour.green, pixel[2] = colour.blue;
    }
  }
  return {};
}

class PngCodec : public Codec {
 public:
  Result<ImageInfo> ReadInfo(std::span<const uint8_t> encoded, uint64_t max_pixels) override;
  Result<void> Decode(const Rect& wanted, const DecodeRequest& request, Pixels& out) override;

 private:
  Result<void> DecodeWith(PngSession& session, const Rect& wanted, bool gray, Pixels& out);
  Error Failed(const PngSession& session) const;

  std::span<const uint8_t> encoded_;
  int width_ = 0, height_ = 0;
};

Result<ImageInfo> PngCodec::ReadInfo(std::span<const uint8_t> encoded, uint64_t max_pixels) {
  const auto header = ReadPngHeader(encoded);
  if (!header) return header.error();
  if (auto size = CheckSize("PNG", header->width, header->height, max_pixels); !size) return size.error();
  if (header->width > PNG_UINT_31_MAX || header->height > PNG_UINT_31_MAX) {
    return Corrupt(fmt::format("the PNG says it is {} x {} pixels", header->width, header->height));
  }
  encoded_ = encoded;
  width_ = static_cast<int>(header->width);
  height_ = static_cast<int>(header->height);
  return ImageInfo{ImageFormat::kPng, width_, height_, header->orientation};
}

Error PngCodec::Failed(const PngSession& session) const {
  if (session.ended) {
    return Corrupt(fmt::format("the PNG ends at byte {}, within its image data (row {} of {})",
                               encoded_.size(), session.row, height_));
  }
  const char* what = session.png == nullptr ? "libpng cannot be initialised" : session.message;
  return Corrupt(fmt::format("the PNG is damaged near byte {} (row {} of {}): {}",
                             encoded_.size() - session.left, session.row, height_, what));
}

Result<void> PngCodec::Decode(const Rect& wanted, const DecodeRequest& request, Pixels& out) {
  if (auto checked = CheckPngChunks(encoded_); !checked) return checked;
  PngSession session;
  session.next = encoded_.data();
  session.left = encoded_.size();
  return DecodeWith(session, wanted, request.mode == ImageMode::kGray, out);
}

Result<void> PngCodec::DecodeWith(PngSession& session, const Rect& wanted, bool gray, Pixels& out) {
  if (!Guarded(session, [&session, gray] { Open(session, gray); }) || session.png == nullptr) {
    return Failed(session);
  }
  const bool palette = session.color_type == PNG_COLOR_TYPE_PALETTE;
  const int channels = palette ? 3 : png_get_channels(session.png, session.info);
  const int first = session.passes > 1 ? 0 : wanted.y;
  const int rows = session.passes > 1 ? height_ : wanted.height;
  PrepareRows(out, {0, first, width_, rows}, channels);
  out.scale = 1;
  out.scaled_width = width_;
  out.scaled_height = height_;
  uint8_t* const to = out.data.data();
  const size_t stride = out.stride;
  if (!Guarded(session,
               [&session, to, stride, first, rows] { ReadRows(session, to, stride, first, rows); })) {
    return Failed(session);
  }
  if (palette) {
    if (auto applied = ApplyPalette(session, out); !applied) return applied;
  }
  if (gray && out.channels == 3) RgbToGray(out);
  return {};
}

}  // namespace

std::unique_ptr<Codec> MakePngCodec() { return std::make_unique<PngCodec>(); }

}  // namespace fullbore::loader
