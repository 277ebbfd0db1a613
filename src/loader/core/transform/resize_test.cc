#include "loader/core/transform/resize.h"

#include <gtest/gtest.h>

namespace fullbore::loader {
namespace {

TEST(ResizeTest, ResizesTheShorterSideAsTorchvisionDoes) {
  EXPECT_EQ(ResizedSize({.height = 256}, {500, 375}), (Size{341, 256}));  // 341.33, cut
  EXPECT_EQ(ResizedSize({.height = 256}, {375, 500}), (Size{256, 341}));
  EXPECT_EQ(ResizedSize({.height = 256}, {300, 300}), (Size{256, 256}));
  EXPECT_EQ(ResizedSize({.height = 10, .width = 20}, {500, 375}), (Size{20, 10}));
}

TEST(ResizeTest, LimitsTheLongerSideToMaxSize) {
  EXPECT_EQ(ResizedSize({.height = 256, .max_size = 300}, {1000, 500}), (Size{300, 150}));
  EXPECT_EQ(ResizedSize({.height = 256, .max_size = 600}, {1000, 500}), (Size{512, 256}));
  // Torchvision would fail on a side of 0.
  EXPECT_EQ(ResizedSize({.height = 2, .max_size = 3}, {1000, 1}), (Size{3, 1}));
}

}  // namespace
}  // namespace fullbore::loader
