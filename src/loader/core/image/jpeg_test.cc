#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <tuple>

// After <cstdio>: it uses FILE without including it.
#include <jpeglib.h>

#include "loader/core/image/image.h"
#include "loader/core/image/test_images.h"

namespace fullbore::loader::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kWidth = 83, kHeight = 61;  // no multiples of any block
constexpr uint64_t kPixels = uint64_t{kWidth} * kHeight;

struct Kind {
  const char* name;
  int channels;
  AdjustJpeg adjust;
};

AdjustJpeg Sampling(int h, int v) {
  return [h, v](jpeg_compress_struct& info) {
    info.comp_info[0].h_samp_factor = h;
    info.comp_info[0].v_samp_factor = v;
  };
}

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {"h1v1", 3, Sampling(1, 1)},
      {"h2v1", 3, Sampling(2, 1)},
      {"h1v2", 3, Sampling(1, 2)},
      {"h2v2", 3, Sampling(2, 2)},
      {"h4v1", 3, Sampling(4, 1)},
      {"h4v2", 3, Sampling(4, 2)},
      {"gray", 1, nullptr},
      {"gray_2x2", 1, Sampling(2, 2)},
      {"cmyk", 4, nullptr},
      {"ycck", 4,
       [](jpeg_compress_struct& info) {
         jpeg_set_colorspace(&info, JCS_YCCK);
         Sampling(2, 2)(info);
       }},
      {"progressive", 3, [](jpeg_compress_struct& info) { jpeg_simple_progression(&info); }},
      {"progressive_h1v2", 3,
       [](jpeg_compress_struct& info) {
         Sampling(1, 2)(info);
         jpeg_simple_progression(&info);
       }},
      {"restarts", 3, [](jpeg_compress_struct& info) { info.restart_interval = 2; }},
      {"arithmetic", 3, [](jpeg_compress_struct& info) { info.arith_code = TRUE; }},
      {"stored_as_rgb", 3, [](jpeg_compress_struct& info) { jpeg_set_colorspace(&info, JCS_RGB); }},
  };
  return kinds;
}

Bytes Encode(const Kind& kind, int width = kWidth, int height = kHeight) {
  return EncodeJpeg(MakePicture(width, height, kind.channels), 90, kind.adjust);
}

Rect ScaledDown(const Rect& region, int scale) {
  const int left = region.x / scale, top = region.y / scale;
  return {left, top, (region.x + region.width + scale - 1) / scale - left,
          (region.y + region.height + scale - 1) / scale - top};
}

bool Covers(const Rect& outer, const Rect& inner) {
  return outer.x <= inner.x && outer.y <= inner.y && outer.x + outer.width >= inner.x + inner.width &&
         outer.y + outer.height >= inner.y + inner.height;
}

// Corners all over and a few sizes: rows and columns at, before and after the edges of blocks.
void ForRegions(const std::function<void(const Rect&)>& check) {
  for (int y = 0; y < kHeight; y += 5) {
    for (int x = 0; x < kWidth; x += 7) {
      for (const auto& [w, h] : {std::tuple{1, 1}, std::tuple{16, 9}, std::tuple{40, 33}}) {
        check({x, y, std::min(w, kWidth - x), std::min(h, kHeight - y)});
      }
    }
  }
}

TEST(JpegTest, ARegionHasThePixelsOfTheWholeToTheBit) {
  for (const Kind& kind : Kinds()) {
    const Bytes encoded = Encode(kind);
    for (const int scale : {1, 2, 4, 8}) {
      DecodeRequest whole;
      whole.region = {0, 0, kWidth, kHeight};
      whole.max_scale = scale;
      const Decoded all = Decode(encoded, whole);
      ASSERT_TRUE(all.ok) << kind.name << ": " << all.error.text;
      ImageDecoder decoder;
      Pixels part;
      ForRegions([&](const Rect& region) {
        if (::testing::Test::HasFailure()) return;
        DecodeRequest request = whole;
        request.region = region;
        ASSERT_TRUE(decoder.ReadInfo(encoded, kMaxPixels).ok());
        std::fill(part.data.begin(), part.data.end(), 0xAB);
        const auto decoded = decoder.Decode(request, part);
        ASSERT_TRUE(decoded.ok()) << kind.name << ": " << decoded.error().text;
        const Rect scaled = ScaledDown(region, scale);
        ASSERT_TRUE(Covers(part.region, scaled)) << kind.name;
        ASSERT_EQ(FirstDifference(all.pixels, part, scaled), "")
            << kind.name << " 1/" << scale << " region " << region.x << "," << region.y << " " << region.width
            << "x" << region.height;
      });
    }
  }
}

constexpr DecodeRequest kWhole{.region = {0, 0, kWidth, kHeight}};

TEST(JpegTest, AnyTruncationFailsOrKeepsThePixels) {
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    const int with_pixels = CutEverywhere(Encode(kind, 37, 35), kWhole);
    // Without the end marker, or half of it. Arithmetic coding cannot do without.
    EXPECT_LE(with_pixels, std::string(kind.name) == "arithmetic" ? 1 : 3);
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(JpegTest, ARegionThatIsCompleteDecodesFromAFileThatIsCut) {
  const Bytes encoded = EncodeJpeg(MakePicture(kWidth, kHeight), 90);
  const DecodeRequest top{.region = {10, 0, 30, 8}};
  EXPECT_GT(CutEverywhere(encoded, top), static_cast<int>(encoded.size()) / 3);
}

TEST(JpegTest, ScalesByTheLargestAllowedOf1248) {
  const Bytes encoded = EncodeJpeg(MakePicture(kWidth, kHeight), 90);
  for (const auto& [most, scale] : {std::pair{1, 1}, {2, 2}, {3, 2}, {7, 4}, {8, 8}, {100, 8}}) {
    DecodeRequest request = kWhole;
    request.max_scale = most;
    const Decoded image = Decode(encoded, request);
    ASSERT_TRUE(image.ok);
    EXPECT_EQ(image.pixels.scale, scale);
    EXPECT_EQ(image.pixels.scaled_width, (kWidth + scale - 1) / scale);
    EXPECT_EQ(image.pixels.scaled_height, (kHeight + scale - 1) / scale);
  }
}

TEST(JpegTest, GrayIsTheLumaOfAColourImage) {
  const Bytes encoded = EncodeJpeg(MakePicture(kWidth, kHeight), 95, Sampling(1, 1));
  DecodeRequest request = kWhole;
  request.mode = ImageMode::kGray;
  const Decoded gray = Decode(encoded, request), colour = Decode(encoded, kWhole);
  ASSERT_TRUE(gray.ok && colour.ok);
  ASSERT_EQ(gray.pixels.channels, 1);
  int close = 0;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const auto rgb = PixelAt(colour.pixels, x, y);
      const double luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
      close += std::abs(PixelAt(gray.pixels, x, y)[0] - luma) < 2 ? 1 : 0;
    }
  }
  EXPECT_GT(close, kWidth * kHeight * 9 / 10);  // the others are colours that RGB had to clip
}

TEST(JpegTest, GrayOfCmykIsTheGrayOfItsRgb) {
  const Bytes encoded = EncodeJpeg(MakePicture(kWidth, kHeight, 4), 95);
  DecodeRequest request = kWhole;
  request.mode = ImageMode::kGray;
  const Decoded gray = Decode(encoded, request), colour = Decode(encoded, kWhole);
  ASSERT_TRUE(gray.ok && colour.ok);
  const auto rgb = PixelAt(colour.pixels, 50, 40);
  EXPECT_EQ(PixelAt(gray.pixels, 50, 40)[0],
            (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

TEST(JpegTest, TheSameImageDecodesSeveralTimes) {
  const Bytes encoded = EncodeJpeg(MakePicture(kWidth, kHeight), 90);
  ImageDecoder decoder;
  ASSERT_TRUE(decoder.ReadInfo(encoded, kMaxPixels).ok());
  Pixels first, second;
  ASSERT_TRUE(decoder.Decode(kWhole, first).ok());
  ASSERT_TRUE(decoder.Decode(kWhole, second).ok());
  EXPECT_EQ(FirstDifference(first, second, kWhole.region), "");
}

TEST(JpegTest, MemoryOfPixelsIsKeptBetweenImages) {
  const Bytes large = EncodeJpeg(MakePicture(80, 60), 90), small = EncodeJpeg(MakePicture(20, 20), 90);
  ImageDecoder decoder;
  Pixels pixels;
  const DecodeRequest whole{.region = {0, 0, 80, 60}};
  ASSERT_TRUE(decoder.ReadInfo(large, kMaxPixels).ok() && decoder.Decode(whole, pixels).ok());
  const uint8_t* memory = pixels.data.data();
  ASSERT_TRUE(decoder.ReadInfo(small, kMaxPixels).ok() && decoder.Decode(whole, pixels).ok());
  ASSERT_TRUE(decoder.ReadInfo(large, kMaxPixels).ok() && decoder.Decode(whole, pixels).ok());
  EXPECT_EQ(pixels.data.data(), memory);
}

// A decoder that kept tables between files would decode this one with another file's.
TEST(JpegTest, TablesOfTheFileBeforeAreNotUsed) {
  ImageDecoder decoder;
  Pixels pixels;
  const Bytes good = ReadFile(CorpusDirectory() + "/files/plain.jpg");
  const Bytes without = ReadFile(CorpusDirectory() + "/files/no_quantization_tables.jpg");
  ASSERT_TRUE(decoder.ReadInfo(good, kMaxPixels).ok() && decoder.Decode(kWhole, pixels).ok());
  EXPECT_FALSE(decoder.ReadInfo(without, kMaxPixels).ok() && decoder.Decode(kWhole, pixels).ok());
}

TEST(JpegTest, SizeIsCheckedAgainstTheLimitToThePixel) {
  const Bytes encoded = EncodeJpeg(MakePicture(kWidth, kHeight), 90);
  ImageDecoder decoder;
  EXPECT_TRUE(decoder.ReadInfo(encoded, kPixels).ok());
  const auto refused = decoder.ReadInfo(encoded, kPixels - 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().text, AllOf(HasSubstr("83 x 61"), HasSubstr("5,062")));
  EXPECT_THAT(refused.error().hint, HasSubstr("max_image_pixels"));
}

TEST(JpegTest, ARegionOutsideTheImageIsTheCallersError) {
  const Decoded image = Decode(EncodeJpeg(MakePicture(kWidth, kHeight), 90), {.region = {kWidth, 0, 5, 5}});
  ASSERT_FALSE(image.ok);
  EXPECT_EQ(image.error.code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace fullbore::loader::testing
