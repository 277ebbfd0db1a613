#include "loader/core/transform/draws.h"

#include <gtest/gtest.h>

#include <cmath>

#include "loader/core/transform/random_horizontal_flip.h"
#include "loader/core/transform/random_resized_crop.h"
#include "loader/core/transform/testing/samples.h"

namespace fullbore::loader {
namespace {

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

}  // namespace
}  // namespace fullbore::loader
