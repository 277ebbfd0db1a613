#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "loader/core/image/image.h"
#include "loader/core/image/test_images.h"

namespace fullbore::loader::testing {
namespace {

constexpr int kWidth = 37, kHeight = 29;
constexpr DecodeRequest kWhole{.region = {0, 0, kWidth, kHeight}};

TEST(PngTest, PixelsAreTheOnesEncoded) {
  for (const bool interlaced : {false, true}) {
    const Picture picture = MakePicture(kWidth, kHeight);
    const Decoded image = Decode(EncodePng(picture, interlaced), kWhole);
    ASSERT_TRUE(image.ok) << image.error.text;
    EXPECT_TRUE(std::equal(picture.pixels.begin(), picture.pixels.end(), image.pixels.data.begin()));
  }
}

TEST(PngTest, RowsOutsideTheRegionAreNotInTheResult) {
  const Bytes encoded = EncodePng(MakePicture(kWidth, kHeight), false);
  const Decoded whole = Decode(encoded, kWhole);
  const DecodeRequest request{.region = {5, 11, 8, 6}};
  const Decoded part = Decode(encoded, request);
  ASSERT_TRUE(part.ok);
  EXPECT_EQ(part.pixels.region.y, 11);
  EXPECT_EQ(part.pixels.region.height, 6);
  EXPECT_EQ(FirstDifference(whole.pixels, part.pixels, request.region), "");
}

TEST(PngTest, GrayIsPillowsGray) {
  DecodeRequest request = kWhole;
  request.mode = ImageMode::kGray;
  const Picture picture = MakePicture(kWidth, kHeight);
  const Decoded image = Decode(EncodePng(picture, false), request);
  ASSERT_TRUE(image.ok);
  ASSERT_EQ(image.pixels.channels, 1);
  for (size_t i = 0; i < picture.pixels.size(); i += 3) {
    const uint8_t* rgb = &picture.pixels[i];
    ASSERT_EQ(image.pixels.data[i / 3], (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
  }
}

TEST(PngTest, GrayStaysGray) {
  DecodeRequest request = kWhole;
  request.mode = ImageMode::kGray;
  const Picture picture = MakePicture(kWidth, kHeight, 1);
  const Decoded image = Decode(EncodePng(picture, true), request);
  ASSERT_TRUE(image.ok);
  EXPECT_TRUE(std::equal(picture.pixels.begin(), picture.pixels.end(), image.pixels.data.begin()));
}

// Every cut but one within the last chunk, which nothing depends on, hits a checksum or the end.
TEST(PngTest, AnyTruncationFailsOrKeepsThePixels) {
  constexpr int kEndChunkBytes = 12;
  for (const bool interlaced : {false, true}) {
    EXPECT_EQ(CutEverywhere(EncodePng(MakePicture(kWidth, kHeight), interlaced), kWhole), kEndChunkBytes);
  }
  for (const char* name : {"palette_transparent.png", "many_data_chunks.png", "gray_16_bit.png"}) {
    SCOPED_TRACE(name);
    const DecodeRequest whole{.region = {0, 0, 48, 32}};
    EXPECT_EQ(CutEverywhere(ReadFile(CorpusDirectory() + "/files/" + name), whole), kEndChunkBytes);
  }
}

TEST(PngTest, OneWrongByteAnywhereBeforeTheEndIsNoticedOrChangesNothing) {
  const Bytes encoded = EncodePng(MakePicture(9, 7), false);
  const DecodeRequest request{.region = {0, 0, 9, 7}};
  const Decoded whole = Decode(encoded, request);
  for (size_t at = 0; at < encoded.size(); ++at) {
    Bytes wrong = encoded;
    wrong[at] ^= 0x10;
    const Decoded image = Decode(wrong, request);
    if (image.ok) {
      ASSERT_EQ(FirstDifference(whole.pixels, image.pixels, request.region), "") << "byte " << at;
    }
    EXPECT_EQ(image.ok, at + 12 >= encoded.size()) << "byte " << at;  // the chunk IEND
  }
}

}  // namespace
}  // namespace fullbore::loader::testing
