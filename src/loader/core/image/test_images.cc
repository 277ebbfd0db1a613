#include "loader/core/image/test_images.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <webp/encode.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

// After <cstdio>: it uses FILE without including it.
#include <jpeglib.h>

#include "base/testing/source_directory.h"

namespace fullbore::loader::testing {

Picture MakePicture(int width, int height, int channels) {
  Picture picture{width, height, channels, {}};
  uint32_t noise = 1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        noise = noise * 1664525 + 1013904223;
        const int slope = x * (3 + 2 * c) + y * (5 - c);
        const int edge = ((x / 5 + y / 7 + c) % 2) * 90;
        picture.pixels.push_back(static_cast<uint8_t>((slope % 140) + edge + static_cast<int>(noise >> 28)));
      }
    }
  }
  return picture;
}

Bytes EncodeJpeg(const Picture& picture, int quality, const AdjustJpeg& adjust) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 4 ? JCS_CMYK : picture.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  if (adjust) adjust(info);
  jpeg_start_compress(&info, TRUE);
  const size_t stride = static_cast<size_t>(picture.width) * static_cast<size_t>(picture.channels);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(picture.pixels.data() + info.next_scanline * stride);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes bytes(data, data + size);
  std::free(data);
  return bytes;
}

Bytes EncodePng(const Picture& picture, bool interlaced) {
  Bytes bytes;
  png_struct* png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_info* info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_struct* writer, uint8_t* data, size_t size) {
        auto* to = static_cast<Bytes*>(png_get_io_ptr(writer));
        to->insert(to->end(), data, data + size);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<uint32_t>(picture.width), static_cast<uint32_t>(picture.height), 8,
               picture.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY,
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  const std::ptrdiff_t stride = std::ptrdiff_t{picture.width} * picture.channels;
  std::vector<uint8_t*> rows;
  for (int y = 0; y < picture.height; ++y) {
    rows.push_back(const_cast<uint8_t*>(picture.pixels.data()) + y * stride);
  }
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

Bytes EncodeWebp(const Picture& picture, bool lossless) {
  uint8_t* data = nullptr;
  const int stride = picture.width * 3;
  const size_t size =
      lossless ? WebPEncodeLosslessRGB(picture.pixels.data(), picture.width, picture.height, stride, &data)
               : WebPEncodeRGB(picture.pixels.data(), picture.width, picture.height, stride, 80, &data);
  Bytes bytes(data, data + size);
  WebPFree(data);
  return bytes;
}

Decoded Decode(std::span<const uint8_t> encoded, const DecodeRequest& request, uint8_t fill) {
  Decoded result;
  ImageDecoder decoder;
  const auto info = decoder.ReadInfo(encoded, kMaxPixels);
  if (!info) {
    result.error = info.error();
    return result;
  }
  result.info = *info;
  result.pixels.data.assign(static_cast<size_t>(info->width) * static_cast<size_t>(info->height) * 4, fill);
  const auto decoded = decoder.Decode(request, result.pixels);
  result.ok = decoded.ok();
  if (!decoded) result.error = decoded.error();
  return result;
}

Decoded DecodeAll(std::span<const uint8_t> encoded, uint8_t fill) {
  DecodeRequest request;
  request.region = {0, 0, 1 << 30, 1 << 30};
  return Decode(encoded, request, fill);
}

std::vector<int> PixelAt(const Pixels& pixels, int x, int y) {
  const size_t at = static_cast<size_t>(y - pixels.region.y) * pixels.stride +
                    static_cast<size_t>((x - pixels.region.x) * pixels.channels);
  const auto pixel = pixels.data.begin() + static_cast<std::ptrdiff_t>(at);
  return {pixel, pixel + pixels.channels};
}

std::string FirstDifference(const Pixels& a, const Pixels& b, const Rect& region) {
  for (int y = region.y; y < region.y + region.height; ++y) {
    for (int x = region.x; x < region.x + region.width; ++x) {
      if (PixelAt(a, x, y) != PixelAt(b, x, y)) {
        return fmt::format("at ({}, {}): {} and {}", x, y, PixelAt(a, x, y)[0], PixelAt(b, x, y)[0]);
      }
    }
  }
  return "";
}

int CutEverywhere(const Bytes& encoded, const DecodeRequest& request) {
  const Decoded whole = Decode(encoded, request);
  EXPECT_TRUE(whole.ok) << whole.error.text;
  int with_pixels = 0;
  for (size_t size = 0; size < encoded.size(); ++size) {
    const Bytes cut(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(size));  // exact: for asan
    const Decoded part = Decode(cut, request, 0xEE);
    if (!part.ok) {
      EXPECT_EQ(part.error.code, ErrorCode::kCorrupt) << "cut at " << size << ": " << part.error.text;
      EXPECT_THAT(part.error.text, ::testing::HasSubstr(std::to_string(size))) << "cut at " << size;
      continue;
    }
    ++with_pixels;
    EXPECT_EQ(FirstDifference(whole.pixels, part.pixels, whole.pixels.region), "") << "cut at " << size;
    if (::testing::Test::HasFailure()) break;
  }
  return with_pixels;
}

Bytes ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string CorpusDirectory() { return fullbore::testing::SourceDirectory() + "/tests/loader/corpus"; }

}  // namespace fullbore::loader::testing
