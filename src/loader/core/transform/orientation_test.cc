#include "loader/core/transform/orientation.h"

#include <gtest/gtest.h>

#include <string>

namespace fullbore::loader {
namespace {

// A gray image of letters, upright by `orientation`, as rows of text.
std::string Upright(const std::string& rows, int width, int height, int orientation) {
  const std::vector<uint8_t> pixels(rows.begin(), rows.end());
  std::vector<uint8_t> storage;
  const ImageView stored = {
      pixels.data(), pixels.size(), static_cast<size_t>(width), 1, {0, 0, width, height}, 1};
  const ImageView upright = TurnUpright(stored, {width, height}, orientation, storage);
  EXPECT_EQ((Size{upright.region.width, upright.region.height}), UprightSize({width, height}, orientation));
  return {storage.begin(), storage.end()};
}

TEST(OrientationTest, TurnsAllEightUpright) {
  // abc
  // def
  EXPECT_EQ(Upright("abcdef", 3, 2, 1), "abcdef");
  EXPECT_EQ(Upright("abcdef", 3, 2, 2), "cbafed");
  EXPECT_EQ(Upright("abcdef", 3, 2, 3), "fedcba");
  EXPECT_EQ(Upright("abcdef", 3, 2, 4), "defabc");
  EXPECT_EQ(Upright("abcdef", 3, 2, 5), "adbecf");
  EXPECT_EQ(Upright("abcdef", 3, 2, 6), "daebfc");  // a quarter turn clockwise
  EXPECT_EQ(Upright("abcdef", 3, 2, 7), "fcebda");
  EXPECT_EQ(Upright("abcdef", 3, 2, 8), "cfbead");
}

TEST(OrientationTest, PartsAreFoundInTheStoredImageAndBack) {
  const Size stored = {100, 60};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Rect part = {7, 11, 20, 30};
    const Rect back = UprightRect(StoredRect(part, stored, orientation), stored, orientation);
    EXPECT_EQ(std::tie(back.x, back.y, back.width, back.height),
              std::tie(part.x, part.y, part.width, part.height))
        << orientation;
  }
}

}  // namespace
}  // namespace fullbore::loader
