#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "loader/core/image/image.h"
#include "loader/core/image/test_images.h"

namespace fullbore::loader::testing {
namespace {

constexpr int kWidth = 83, kHeight = 61;
constexpr DecodeRequest kWhole{.region = {0, 0, kWidth, kHeight}};

TEST(WebpTest, LosslessPixelsAreTheOnesEncoded) {
  const Picture picture = MakePicture(kWidth, kHeight);
  const Decoded image = Decode(EncodeWebp(picture, true), kWhole);
  ASSERT_TRUE(image.ok) << image.error.text;
  EXPECT_TRUE(std::equal(picture.pixels.begin(), picture.pixels.end(), image.pixels.data.begin()));
}

TEST(WebpTest, ARegionHasThePixelsOfTheWholeToTheBit) {
  for (const bool lossless : {false, true}) {
    const Bytes encoded = EncodeWebp(MakePicture(kWidth, kHeight), lossless);
    const Decoded whole = Decode(encoded, kWhole);
    ASSERT_TRUE(whole.ok);
    for (int y = 0; y < kHeight; y += 3) {
      for (int x = 0; x < kWidth; x += 7) {
        const Rect region{x, y, std::min(20, kWidth - x), std::min(13, kHeight - y)};
        const Decoded part = Decode(encoded, {.region = region});
        ASSERT_TRUE(part.ok);
        ASSERT_EQ(FirstDifference(whole.pixels, part.pixels, region), "") << lossless << " " << x << "," << y;
      }
    }
  }
}

TEST(WebpTest, AnyTruncationFailsOrKeepsThePixels) {
  const Picture picture = MakePicture(24, 20);
  const DecodeRequest whole{.region = {0, 0, 24, 20}};
  for (const bool lossless : {false, true}) {
    SCOPED_TRACE(lossless);
    (void)CutEverywhere(EncodeWebp(picture, lossless), whole);
  }
  for (const char* name : {"animated.webp", "lossy_alpha.webp", "lossless_alpha.webp", "exif_8.webp"}) {
    SCOPED_TRACE(name);
    (void)CutEverywhere(ReadFile(CorpusDirectory() + "/files/" + name), {.region = {0, 0, 48, 32}});
  }
}

TEST(WebpTest, GrayIsMadeOfTheColours) {
  DecodeRequest request = kWhole;
  request.mode = ImageMode::kGray;
  const Picture picture = MakePicture(kWidth, kHeight);
  const Decoded image = Decode(EncodeWebp(picture, true), request);
  ASSERT_TRUE(image.ok);
  ASSERT_EQ(image.pixels.channels, 1);
  const uint8_t* rgb = &picture.pixels[300];
  EXPECT_EQ(image.pixels.data[100], (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

}  // namespace
}  // namespace fullbore::loader::testing
