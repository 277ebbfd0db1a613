#include "loader/core/transform/draws.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

namespace fullbore::loader {
namespace {

constexpr int kSamples = 20'000;

SampleSeed Seed(int sample) { return SampleSeed::Of(1, 2, static_cast<uint64_t>(sample)); }

TEST(DrawsTest, ATransformAddedInFrontShiftsNobodysDraws) {
  const RandomResizedCrop crop = {.height = 8, .width = 8};
  const std::vector<Transform> few = {crop, RandomHorizontalFlip{}};
  const std::vector<Transform> many = {
      ColorJitter{.hue = {-0.1, 0.1}},    Resize{.height = 9},    crop,
      RandomRotation{.degrees = {-5, 5}}, RandomHorizontalFlip{}, Normalize{}};
  for (int i = 0; i < 100; ++i) {
    const Rect a = DrawCrop(crop, {500, 375}, Draws(Seed(i), few, 0));
    const Rect b = DrawCrop(crop, {500, 375}, Draws(Seed(i), many, 2));
    EXPECT_EQ(std::tie(a.x, a.y, a.width, a.height), std::tie(b.x, b.y, b.width, b.height));
    EXPECT_EQ(DrawFlip({}, Draws(Seed(i), few, 1)), DrawFlip({}, Draws(Seed(i), many, 4)));
  }
}

TEST(DrawsTest, TwoOfAKindDrawApart) {
  const std::vector<Transform> twice = {RandomHorizontalFlip{}, RandomHorizontalFlip{}};
  int same = 0;
  for (int i = 0; i < kSamples; ++i) {
    same += DrawFlip({}, Draws(Seed(i), twice, 0)) == DrawFlip({}, Draws(Seed(i), twice, 1)) ? 1 : 0;
  }
  EXPECT_NEAR(same, kSamples / 2.0, 5 * std::sqrt(kSamples) / 2);  // five standard deviations
}

TEST(DrawsTest, FlipsComeAsOftenAsAsked) {
  for (const double p : {0.0, 0.3, 1.0}) {
    const std::vector<Transform> list = {RandomHorizontalFlip{p}};
    int flips = 0;
    for (int i = 0; i < kSamples; ++i) flips += DrawFlip({p}, Draws(Seed(i), list, 0)) ? 1 : 0;
    EXPECT_NEAR(flips, kSamples * p, 5 * std::sqrt(kSamples * p * (1 - p)));
  }
}

TEST(DrawsTest, CropsLieInTheImageWithTheAskedAreaAndRatio) {
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

TEST(DrawsTest, FallsBackToTheLargestCentralCropOfAdmissibleRatio) {
  const RandomResizedCrop crop = {.height = 8, .width = 8, .scale = {1, 1}};
  const std::vector<Transform> list = {crop};
  const Rect wide = DrawCrop(crop, {1000, 90}, Draws(Seed(0), list, 0));
  EXPECT_EQ(std::tuple(wide.x, wide.y, wide.width, wide.height), std::tuple(440, 0, 120, 90));
  const Rect tall = DrawCrop(crop, {90, 1000}, Draws(Seed(0), list, 0));
  EXPECT_EQ(std::tuple(tall.x, tall.y, tall.width, tall.height), std::tuple(0, 440, 90, 120));
}

TEST(DrawsTest, EveryImageHasACropEvenASinglePixel) {
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

TEST(DrawsTest, JitterAppliesItsPartsInEveryOrderEquallyOften) {
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

TEST(DrawsTest, AnglesFillTheirInterval) {
  const RandomRotation rotation = {.degrees = {-30, 10}};
  const std::vector<Transform> list = {rotation};
  double low = 0, high = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double angle = DrawAngle(rotation, Draws(Seed(i), list, 0));
    low = std::min(low, angle);
    high = std::max(high, angle);
  }
  EXPECT_GE(low, -30);
  EXPECT_LT(low, -29.9);
  EXPECT_LT(high, 10);
  EXPECT_GT(high, 9.9);
}

}  // namespace
}  // namespace fullbore::loader
