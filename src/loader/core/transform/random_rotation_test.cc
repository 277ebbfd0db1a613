#include "loader/core/transform/random_rotation.h"

#include <gtest/gtest.h>

#include <string>

#include "loader/core/transform/testing/samples.h"

namespace fullbore::loader {
namespace {

PixelBuffer GrayOf(const std::string& bytes, Size size) {
  PixelBuffer image;
  image.Resize(size, 1);
  std::copy(bytes.begin(), bytes.end(), image.storage.begin());
  return image;
}

std::string TextOf(const PixelBuffer& image) {
  const auto begin = image.storage.begin();
  return {begin, begin + static_cast<std::ptrdiff_t>(image.bytes())};
}

std::string Rotated(const std::string& bytes, Size size, double degrees, Interpolation interpolation) {
  PixelBuffer out;
  Rotate(GrayOf(bytes, size), degrees, interpolation, {'.', 0, 0}, out);
  return TextOf(out);
}

TEST(RotationTest, RightAnglesAreExactWithEveryInterpolation) {
  for (const Interpolation interpolation :
       {Interpolation::kNearest, Interpolation::kBilinear, Interpolation::kBicubic}) {
    EXPECT_EQ(Rotated("abcdefghi", {3, 3}, 0, interpolation), "abcdefghi");
    EXPECT_EQ(Rotated("abcdefghi", {3, 3}, 90, interpolation), "cfibehadg");  // counter-clockwise
    EXPECT_EQ(Rotated("abcdefghi", {3, 3}, -90, interpolation), "gdahebifc");
    EXPECT_EQ(Rotated("abcdefghi", {3, 3}, 180, interpolation), "ihgfedcba");
    EXPECT_EQ(Rotated("abcdefghi", {3, 3}, 720, interpolation), "abcdefghi");
  }
}

TEST(RotationTest, WhatComesFromOutsideIsFilled) {
  EXPECT_EQ(Rotated("abcdef", {6, 1}, 90, Interpolation::kNearest).substr(0, 2), "..");
  const std::string turned = Rotated(std::string(100, 'x'), {10, 10}, 45, Interpolation::kBilinear);
  EXPECT_EQ(turned.front(), '.');
  EXPECT_EQ(turned[55], 'x');
}

TEST(RotationTest, AUniformImageStaysUniformInside) {
  PixelBuffer in, out;
  in.Resize({31, 17}, 3);
  std::fill(in.storage.begin(), in.storage.end(), uint8_t{200});
  for (const Interpolation interpolation :
       {Interpolation::kNearest, Interpolation::kBilinear, Interpolation::kBicubic}) {
    Rotate(in, 12.5, interpolation, {200, 200, 200}, out);
    for (size_t i = 0; i < out.bytes(); ++i) ASSERT_NEAR(out.storage[i], 200, 1);
  }
}

TEST(RotationTest, AnglesFillTheirInterval) {
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
