#include "loader/core/transform/center_crop.h"

#include <gtest/gtest.h>

namespace fullbore::loader {

static bool operator==(const Rect& a, const Rect& b) {
  return a.x == b.x && a.y == b.y && a.width == b.width && a.height == b.height;
}
static void PrintTo(const Rect& r, std::ostream* out) {
  *out << r.x << ',' << r.y << ' ' << r.width << 'x' << r.height;
}

namespace {

TEST(CenterCropTest, CentresCropsWithHalvesRoundedToEven) {
  EXPECT_EQ(CenterCropRect({.height = 224, .width = 224}, {341, 256}), (Rect{58, 16, 224, 224}));  // 58.5
  EXPECT_EQ(CenterCropRect({.height = 224, .width = 224}, {339, 256}), (Rect{58, 16, 224, 224}));  // 57.5
}

TEST(CenterCropTest, PadsImagesSmallerThanTheCrop) {
  EXPECT_EQ(CenterCropRect({.height = 10, .width = 10}, {5, 20}), (Rect{-2, 5, 10, 10}));
}

}  // namespace
}  // namespace fullbore::loader
