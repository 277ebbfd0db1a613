// Walks tests/loader/corpus/outcomes.json: every broken or odd file has the outcome that is written there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "loader/core/image/image.h"
#include "loader/core/image/npy.h"
#include "loader/core/image/test_images.h"

namespace fullbore::loader::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// The inverse transform is the same in all libjpeg-turbo, but WebP's and CMYK's rounding differ by version.
constexpr int kPixelTolerance = 2;
constexpr double kMeanTolerance = 0.5;

Json Outcomes() { return Json::parse(std::ifstream(CorpusDirectory() + "/outcomes.json")); }

void ExpectError(const Error& error, const Json& expected) {
  const bool corrupt = expected.at("error") == "corrupt";
  EXPECT_EQ(error.code, corrupt ? ErrorCode::kCorrupt : ErrorCode::kUnsupported) << error.text;
  EXPECT_THAT(error.text, HasSubstr(expected.at("says").get<std::string>()));
}

void ExpectImage(const Decoded& image, const Json& expected) {
  ASSERT_TRUE(image.ok) << image.error.text;
  const Pixels& pixels = image.pixels;
  EXPECT_EQ(Json({image.info.width, image.info.height}), expected.at("size"));
  EXPECT_EQ(image.info.orientation, expected.at("orientation"));
  ASSERT_EQ(pixels.channels, 3);
  for (const Json& pixel : expected.at("pixels")) {
    const auto actual = PixelAt(pixels, pixel[0], pixel[1]);
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(actual[c], pixel[c + 2].get<int>(), kPixelTolerance) << pixel << " channel " << c;
    }
  }
  double sums[3] = {0, 0, 0};
  for (int y = 0; y < image.info.height; ++y) {
    for (int x = 0; x < image.info.width; ++x) {
      for (size_t c = 0; c < 3; ++c) sums[c] += PixelAt(pixels, x, y)[c];
    }
  }
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(sums[c] / (image.info.width * image.info.height), expected.at("mean")[c], kMeanTolerance);
  }
}

void ExpectArray(const Result<NpyArray>& array, const Json& expected) {
  ASSERT_TRUE(array.ok()) << array.error().text;
  EXPECT_EQ(NameOf(array->dtype), expected.at("dtype"));
  EXPECT_EQ(Json(array->shape), expected.at("shape"));
  std::string hex;
  for (const uint8_t byte : array->data) {
    for (const int digit : {byte >> 4, byte & 15}) hex += "0123456789abcdef"[digit];
  }
  EXPECT_EQ(hex, expected.at("data"));
}

void CheckArray(const Bytes& bytes, const Json& expected) {
  const auto array = ParseNpy(bytes);
  if (!expected.contains("error")) return ExpectArray(array, expected);
  ASSERT_FALSE(array.ok());
  ExpectError(array.error(), expected);
}

void CheckImage(const Bytes& bytes, const Json& expected) {
  const Decoded image = DecodeAll(bytes);
  if (!expected.contains("error")) {
    ExpectImage(image, expected);
    // Memory that decoding leaves as it was would be a pixel that nobody wrote.
    const Decoded again = DecodeAll(bytes, 0xEE);
    EXPECT_EQ(FirstDifference(image.pixels, again.pixels, image.pixels.region), "");
    return;
  }
  ASSERT_FALSE(image.ok);
  ExpectError(image.error, expected);
}

TEST(CorpusTest, EveryOddOrBrokenFileHasItsOutcome) {
  const Json outcomes = Outcomes();
  ASSERT_GE(outcomes.size(), 40U);
  for (const auto& [name, expected] : outcomes.items()) {
    SCOPED_TRACE(name);
    const Bytes bytes = ReadFile(CorpusDirectory() + "/files/" + name);
    ASSERT_EQ(bytes.empty(), name.starts_with("empty."));
    name.ends_with(".npy") ? CheckArray(bytes, expected) : CheckImage(bytes, expected);
  }
}

// One decoder for all, as a thread of the loader has: nothing of a file may end up in the next one's pixels.
TEST(CorpusTest, OutcomesDoNotDependOnTheFileBefore) {
  ImageDecoder decoder;
  Pixels pixels;
  const DecodeRequest whole{.region = {0, 0, 1 << 20, 1 << 20}};
  for (const bool forward : {true, false}) {
    const Json outcomes = Outcomes();
    std::vector<std::string> names;
    for (const auto& [name, expected] : outcomes.items()) {
      if (!name.ends_with(".npy")) names.push_back(name);
    }
    if (!forward) std::reverse(names.begin(), names.end());
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const Bytes bytes = ReadFile(CorpusDirectory() + "/files/" + name);
      const auto info = decoder.ReadInfo(bytes, kMaxPixels);
      const bool ok = info.ok() && decoder.Decode(whole, pixels).ok();
      ASSERT_EQ(ok, !outcomes[name].contains("error"));
      if (!ok) continue;
      EXPECT_EQ(FirstDifference(pixels, DecodeAll(bytes).pixels, pixels.region), "");
    }
  }
}

}  // namespace
}  // namespace fullbore::loader::testing
