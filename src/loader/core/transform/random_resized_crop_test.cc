#include "loader/core/transform/random_resized_crop.h"

#include <gtest/gtest.h>

#include <cmath>

#include "loader/core/transform/testing/samples.h"

namespace fullbore::loader {
namespace {

TEST(RandomResizedCropTest, CropsLieInTheImageWithTheAskedAreaAndRatio) {
  const RandomResizedCrop crop = {.height = 224, .width = 224};
  const std::vector<Transform> list = {crop};
  double area_sum = 0, log_ratio_sum = 0, left_sum = 0;
  for (int i = 0; i < kSamples; ++i) {
    const Rect r = DrawCrop(crop, {500, 500}, Draws(Seed(i), list, 0));
    ASSERT_GE(r.x, 0);
    ASSERT_GE(r.y, 0);
    ASSERT_LE(r.x + r.width, 500);
    ASSERT_LE(r.y + r.height, 500);
    const double area = r.width * r.height / 250'000.0, ratio = static_cast<double>(r.width) / r.height;
    ASSERT_GT(area, 0.078);
    ASSERT_GT(ratio, 0.74);
    ASSERT_LT(ratio, 1.35);
    area_sum += area;
    log_ratio_sum += std::log(ratio);
    if (r.width < 500) left_sum += static_cast<double>(r.x) / (500 - r.width);
  }
  // A bit less than the mean of [0.08, 1], for large crops of odd shape are drawn again.
  EXPECT_NEAR(area_sum / kSamples, 0.5, 0.04);
  EXPECT_NEAR(log_ratio_sum / kSamples, 0, 0.01);
  EXPECT_NEAR(left_sum / kSamples, 0.5, 0.02);
}

TEST(RandomResizedCropTest, FallsBackToTheLargestCentralCropOfAdmissibleRatio) {
  const RandomResizedCrop crop = {.height = 8, .width = 8, .scale = {1, 1}};
  const std::vector<Transform> list = {crop};
  const Rect wide = DrawCrop(crop, {1000, 90}, Draws(Seed(0), list, 0));
  EXPECT_EQ(std::tuple(wide.x, wide.y, wide.width, wide.height), std::tuple(440, 0, 120, 90));
  const Rect tall = DrawCrop(crop, {90, 1000}, Draws(Seed(0), list, 0));
  EXPECT_EQ(std::tuple(tall.x, tall.y, tall.width, tall.height), std::tuple(0, 440, 90, 120));
}

TEST(RandomResizedCropTest, EveryImageHasACropEvenASinglePixel) {
  const RandomResizedCrop crop = {.height = 8, .width = 8, .ratio = {3, 4}};
  const std::vector<Transform> list = {crop};
  for (const Size size : {Size{1, 1}, Size{1, 65'500}, Size{65'500, 1}, Size{2, 3}}) {
    for (int i = 0; i < 100; ++i) {
      const Rect r = DrawCrop(crop, size, Draws(Seed(i), list, 0));
      ASSERT_GE(r.width, 1);
      ASSERT_GE(r.height, 1);
      ASSERT_LE(r.x + r.width, size.width);
      ASSERT_LE(r.y + r.height, size.height);
    }
  }
}

}  // namespace
}  // namespace fullbore::loader
