#include "loader/core/transform/color_jitter.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "loader/core/transform/testing/samples.h"

namespace fullbore::loader {
namespace {

PixelBuffer Rgb(const std::vector<uint8_t>& bytes) {
  PixelBuffer image;
  image.Resize({static_cast<int>(bytes.size() / 3), 1}, 3);
  std::copy(bytes.begin(), bytes.end(), image.storage.begin());
  return image;
}

std::vector<uint8_t> BytesOf(const PixelBuffer& image) {
  const auto begin = image.storage.begin();
  return {begin, begin + static_cast<std::ptrdiff_t>(image.bytes())};
}

TEST(ColorJitterTest, BrightnessScalesAndSaturates) {
  PixelBuffer image = Rgb({10, 100, 200});
  AdjustBrightness(image, 1.5);
  EXPECT_EQ(BytesOf(image), (std::vector<uint8_t>{15, 150, 255}));
  AdjustBrightness(image, 0);
  EXPECT_EQ(BytesOf(image), (std::vector<uint8_t>{0, 0, 0}));
}

TEST(ColorJitterTest, ContrastPullsTowardsTheMeanGray) {
  PixelBuffer image = Rgb({0, 0, 0, 200, 200, 200});
  AdjustContrast(image, 0.5);
  EXPECT_EQ(BytesOf(image), (std::vector<uint8_t>{50, 50, 50, 150, 150, 150}));
}

TEST(ColorJitterTest, WithoutSaturationOnlyLumaIsLeft) {
  PixelBuffer image = Rgb({255, 0, 0});
  AdjustSaturation(image, 0);
  EXPECT_EQ(BytesOf(image), (std::vector<uint8_t>{76, 76, 76}));
}

TEST(ColorJitterTest, AThirdOfATurnMakesRedGreen) {
  PixelBuffer image = Rgb({255, 0, 0, 10, 10, 10});
  AdjustHue(image, 1.0 / 3);
  EXPECT_EQ(BytesOf(image), (std::vector<uint8_t>{0, 255, 0, 10, 10, 10}));
  AdjustHue(image, -1.0 / 3);
  EXPECT_EQ(BytesOf(image), (std::vector<uint8_t>{255, 0, 0, 10, 10, 10}));
}

TEST(ColorJitterTest, FactorsOfOneChangeNothing) {
  const std::vector<uint8_t> bytes = {1, 2, 3, 250, 128, 4, 77, 78, 79};
  PixelBuffer image = Rgb(bytes);
  AdjustBrightness(image, 1);
  AdjustContrast(image, 1);
  AdjustSaturation(image, 1);
  EXPECT_EQ(BytesOf(image), bytes);
}

TEST(ColorJitterTest, GrayImagesHaveNeitherSaturationNorHue) {
  PixelBuffer image;
  image.Resize({2, 1}, 1);
  image.storage[0] = 10;
  image.storage[1] = 200;
  AdjustSaturation(image, 0);
  AdjustHue(image, 0.3);
  EXPECT_EQ(BytesOf(image), (std::vector<uint8_t>{10, 200}));
}

TEST(ColorJitterTest, JitterAppliesItsPartsInEveryOrderEquallyOften) {
  const ColorJitter jitter = {.brightness = {0.6, 1.4}};
  const std::vector<Transform> list = {jitter};
  std::map<std::array<JitterKind, 4>, int> orders;
  double sum = 0;
  for (int i = 0; i < kSamples; ++i) {
    const JitterDraw drawn = DrawJitter(jitter, Draws(Seed(i), list, 0));
    ++orders[drawn.order];
    sum += drawn.factors[0].value();
    EXPECT_FALSE(drawn.factors[1]);  // {1, 1} leaves contrast alone
    EXPECT_FALSE(drawn.factors[3]);
  }
  EXPECT_NEAR(sum / kSamples, 1, 0.01);
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) {
    EXPECT_NEAR(count, kSamples / 24.0, 5 * std::sqrt(kSamples / 24.0));
  }
}

}  // namespace
}  // namespace fullbore::loader
