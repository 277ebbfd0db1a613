// JPEG: only the blocks that a region needs go through the inverse transform, and nothing after its last row
// is read. Entropy coding has no entry points, so everything before the region is decoded, too, but without
// pixels.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "loader/core/image/codec.h"
#include "loader/core/image/jpeg_session.h"
#include "loader/core/image/pixels.h"

namespace fullbore::loader {
namespace {

// libjpeg's smooth ("fancy") upsampling of chroma looks one sample to either side, two pixels of the image.
// At the edge of a crop it would see the edge instead.
constexpr int kUpsamplingMargin = 2;

// libjpeg-turbo's own limit for untrusted files (TJFLAG_LIMITSCANS); the usual progressive file has 10.
constexpr uint64_t kMaxScans = 500;
// Also, a tiny file with the largest allowed size must not cause minutes of work.
constexpr uint64_t kScansOfLargest = 20;

int ScanLimit(uint64_t pixels, uint64_t max_pixels) {
  const uint64_t by_size =
      std::max<uint64_t>(1, max_pixels / std::max<uint64_t>(1, pixels)) * kScansOfLargest;
  return static_cast<int>(std::min(kMaxScans, by_size));
}

// All coefficients of up to 4 components of 2 bytes each, at whole MCUs of at most 32 pixels, and some room
// for tables: what a progressive file of this size can need. libjpeg fails where it would take more.
long MemoryLimit(const jpeg_decompress_struct& info) {
  const uint64_t coefficients = (uint64_t{info.image_width} + 32) * (uint64_t{info.image_height} + 32) * 4;
  return static_cast<long>(coefficients * sizeof(JCOEF) + (4 << 20));
}

struct Geometry {
  Rect region;    // to be decoded, in scaled pixels; its columns are rounded outwards by libjpeg
  int first_row;  // of whole row groups: jpeg_skip_scanlines is exact only there (libjpeg-turbo issue 915)
};

int ScaleAllowed(int max_scale) { return max_scale >= 8 ? 8 : max_scale >= 4 ? 4 : max_scale >= 2 ? 2 : 1; }

// Inside Guarded: sets libjpeg's parameters, and reads the data of all scans if there are several.
void Start(JpegSession& session, const DecodeRequest& request, int scale) {
  jpeg_decompress_struct& info = session.info;
  switch (info.jpeg_color_space) {
    case JCS_CMYK:
    case JCS_YCCK:
      info.out_color_space = JCS_CMYK;
      break;
    case JCS_GRAYSCALE:
    case JCS_RGB:
    case JCS_YCbCr:
      info.out_color_space = request.mode == ImageMode::kGray ? JCS_GRAYSCALE : JCS_RGB;
      break;
    default:
      session.errors.msg_code = JERR_CONVERSION_NOTIMPL;
      session.errors.error_exit(reinterpret_cast<jpeg_common_struct*>(&info));
  }
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(scale);
  info.dct_method = request.fast_dct ? JDCT_IFAST : JDCT_ISLOW;
  info.do_block_smoothing = FALSE;  // it guesses coefficients that a progressive file lacks
  (void)jpeg_start_decompress(&info);
}

// Inside Guarded, after all scans have been read: checks that every requested component is there and, if the
// file just ends, complete to the last bit. A missing scan leaves no other trace.
void CheckScans(JpegSession& session) {
  const jpeg_decompress_struct& info = session.info;
  for (int c = 0; c < info.num_components; ++c) {
    if (!info.comp_info[c].component_needed) continue;
    if (info.comp_info[c].quant_table == nullptr) FailJpeg(session, "a colour component has no scan");
    if (info.coef_bits == nullptr) continue;
    const int* bits = info.coef_bits[c];  // lowest bit known of each coefficient; -1: none
    if (bits[0] < 0) FailJpeg(session, "a colour component has no scan");
    const bool all = std::all_of(bits, bits + DCTSIZE2, [](int bit) { return bit == 0; });
    if (session.ended && !all) FailJpeg(session, "the last scans are missing");
  }
}

// With such sampling, chroma is scaled down less than luma and yet has to
// be upsampled; jpeg_crop_scanline then takes its width for a smaller one
// than it is (seen with libjpeg-turbo 2.1.5). Rare enough to do without.
bool CanCrop(const jpeg_decompress_struct& info) {
  return info.scale_denom == 1 || (info.max_h_samp_factor <= 2 && info.max_v_samp_factor <= 2);
}

// Inside Guarded: libjpeg is left before the first row of `geometry`, whose columns become the real ones.
void SeekRegion(JpegSession& session, Geometry& geometry) {
  jpeg_decompress_struct& info = session.info;
  JDIMENSION left = static_cast<JDIMENSION>(geometry.region.x);
  JDIMENSION width = static_cast<JDIMENSION>(geometry.region.width);
  if (width < info.output_width) {
    if (CanCrop(info)) {
      jpeg_crop_scanline(&info, &left, &width);
    } else {
      left = 0;
      width = info.output_width;
    }
    geometry.region.x = static_cast<int>(left);
    geometry.region.width = static_cast<int>(width);
  }
  const JDIMENSION skip = static_cast<JDIMENSION>(geometry.first_row);
  if (skip > 0 && jpeg_skip_scanlines(&info, skip) != skip) FailJpeg(session, "rows are missing");
}

// Inside Guarded.
void ReadRows(JpegSession& session, uint8_t* to, size_t stride, int rows) {
  constexpr int kRowsAtOnce = 16;  // the most that libjpeg returns at once
  std::array<JSAMPROW, kRowsAtOnce> pointers;
  while (rows > 0) {
    const int wanted = std::min(rows, kRowsAtOnce);
    for (int i = 0; i < wanted; ++i) pointers[static_cast<size_t>(i)] = to + static_cast<size_t>(i) * stride;
    const JDIMENSION got =
        jpeg_read_scanlines(&session.info, pointers.data(), static_cast<JDIMENSION>(wanted));
    if (got == 0) FailJpeg(session, "no more rows");
    to += got * stride;
    rows -= static_cast<int>(got);
  }
  // Arithmetic coding has no end marker of its own: missing data reads as zeros, without a warning.
  if (session.info.arith_code && session.ended) FailJpeg(session, "arithmetic-coded data that does not end");
}

class JpegCodec : public Codec {
 public:
  JpegCodec() { session_.open = false; }
  ~JpegCodec() override { CloseJpeg(session_); }
  JpegCodec(const JpegCodec&) = delete;
  JpegCodec& operator=(const JpegCodec&) = delete;

  Result<ImageInfo> ReadInfo(std::span<const uint8_t> encoded, uint64_t max_pixels) override;
  Result<void> Decode(const Rect& wanted, const DecodeRequest& request, Pixels& out) override;

 private:
  Result<void> DecodeOpened(const Rect& wanted, const DecodeRequest& request, Pixels& out);
  Geometry Plan(const Rect& wanted, int scale) const;
  Error Failed();

  JpegSession session_;
  std::span<const uint8_t> encoded_;
  uint64_t max_pixels_ = 0;
};

Error JpegCodec::Failed() {
  Error error = JpegError(session_);
  CloseJpeg(session_);
  return error;
}

Result<ImageInfo> JpegCodec::ReadInfo(std::span<const uint8_t> encoded, uint64_t max_pixels) {
  encoded_ = encoded;
  max_pixels_ = max_pixels;
  if (!OpenJpeg(session_, encoded)) return Failed();
  jpeg_decompress_struct& info = session_.info;
  if (auto size = CheckSize("JPEG", info.image_width, info.image_height, max_pixels); !size) {
    CloseJpeg(session_);
    return size.error();
  }
  if (info.data_precision != 8) {  // libjpeg-turbo 3 accepts these, for functions that are not used here
    const int bits = info.data_precision;
    CloseJpeg(session_);
    return Unsupported(fmt::format("the JPEG has {} bits per sample; only 8 are supported", bits),
                       "convert it once");
  }
  session_.most_scans = ScanLimit(uint64_t{info.image_width} * info.image_height, max_pixels);
  info.mem->max_memory_to_use = MemoryLimit(info);
  return ImageInfo{ImageFormat::kJpeg, static_cast<int>(info.image_width),
                   static_cast<int>(info.image_height), std::max(1, session_.orientation)};
}

Result<void> JpegCodec::Decode(const Rect& wanted, const DecodeRequest& request, Pixels& out) {
  if (!session_.open) {  // decoded before, or failed
    if (auto again = ReadInfo(encoded_, max_pixels_); !again) return again.error();
  }
  auto decoded = DecodeOpened(wanted, request, out);
  CloseJpeg(session_);
  return decoded;
}

Geometry JpegCodec::Plan(const Rect& wanted, int scale) const {
  const auto& info = session_.info;
  const int width = static_cast<int>(info.output_width), height = static_cast<int>(info.output_height);
  const int left = std::max(0, wanted.x / scale - kUpsamplingMargin);
  const int right = std::min(width, (wanted.x + wanted.width + scale - 1) / scale + kUpsamplingMargin);
  const int first = wanted.y / scale / info.max_v_samp_factor * info.max_v_samp_factor;
  const int last = std::min(height, (wanted.y + wanted.height + scale - 1) / scale);
  return {{left, first, right - left, last - first}, first};
}

Result<void> JpegCodec::DecodeOpened(const Rect& wanted, const DecodeRequest& request, Pixels& out) {
  JpegSession& session = session_;
  const int scale = ScaleAllowed(request.max_scale);
  const bool started = Guarded(session, [&session, &request, scale] {
    Start(session, request, scale);
    if (jpeg_has_multiple_scans(&session.info)) CheckScans(session);
  });
  if (!started) return JpegError(session);

  out.scale = scale;
  out.scaled_width = static_cast<int>(session.info.output_width);
  out.scaled_height = static_cast<int>(session.info.output_height);
  Geometry geometry = Plan(wanted, scale);
  if (!Guarded(session, [&session, &geometry] { SeekRegion(session, geometry); })) return JpegError(session);

  PrepareRows(out, geometry.region, session.info.output_components);
  uint8_t* const to = out.data.data();
  const size_t stride = out.stride;
  const int rows = geometry.region.height;
  if (!Guarded(session, [&session, to, stride, rows] { ReadRows(session, to, stride, rows); })) {
    return JpegError(session);
  }
  if (out.channels == 4) {
    CmykToRgb(out);
    if (request.mode == ImageMode::kGray) RgbToGray(out);
  }
  return {};
}

}  // namespace

std::unique_ptr<Codec> MakeJpegCodec() { return std::make_unique<JpegCodec>(); }

}  // namespace fullbore::loader
