#include "loader/core/transform/geometry.h"

#include <gtest/gtest.h>

#include <random>

#include "loader/core/transform/resampler.h"

namespace fullbore::loader {

static bool operator==(const Rect& a, const Rect& b) {
  return a.x == b.x && a.y == b.y && a.width == b.width && a.height == b.height;
}
static void PrintTo(const Rect& r, std::ostream* out) {
  *out << r.x << ',' << r.y << ' ' << r.width << 'x' << r.height;
}

namespace {

GeometryChain ChainOf(Size input) {
  GeometryChain chain;
  chain.Start(input);
  return chain;
}

TEST(GeometryTest, ResizeAndCropAreOnePassThatReadsOnlyTheCrop) {
  GeometryChain chain = ChainOf({500, 375});
  chain.ResizeTo({341, 256}, Interpolation::kBilinear);
  chain.Crop({58, 16, 224, 224});
  ASSERT_EQ(chain.passes().size(), 1u);
  const Rect source = SourceRegion(chain.passes()[0], 1);
  EXPECT_GT(source.x, 75);
  EXPECT_LT(source.x + source.width, 425);
  EXPECT_GT(source.y, 15);
  EXPECT_LT(source.y + source.height, 360);
}

TEST(GeometryTest, CropResizeFlipAndCropAreOnePass) {
  GeometryChain chain = ChainOf({500, 375});
  chain.Crop({100, 50, 200, 100});
  chain.ResizeTo({400, 200}, Interpolation::kBicubic);
  chain.Flip();
  chain.Crop({10, 20, 30, 40});
  ASSERT_EQ(chain.passes().size(), 1u);
  const Pass& pass = chain.passes()[0];
  EXPECT_EQ(pass.box, (Rect{100, 50, 200, 100}));
  EXPECT_EQ(pass.window, (Rect{360, 20, 30, 40}));  // before the mirror
  EXPECT_TRUE(pass.mirror_window);
  EXPECT_FALSE(pass.mirror_box);
}

TEST(GeometryTest, TwoFlipsCancelOut) {
  GeometryChain chain = ChainOf({50, 40});
  chain.Flip();
  chain.Flip();
  EXPECT_TRUE(chain.passes()[0].changes_nothing());
}

TEST(GeometryTest, ACropAfterAFlipIsTakenFromTheMirroredImage) {
  GeometryChain chain = ChainOf({50, 40});
  chain.Flip();
  chain.Crop({5, 6, 10, 20});
  EXPECT_EQ(chain.passes()[0].box, (Rect{35, 6, 10, 20}));
}

TEST(GeometryTest, ASecondResizeIsASecondPass) {
  GeometryChain chain = ChainOf({500, 375});
  chain.ResizeTo({341, 256}, Interpolation::kBilinear);
  chain.Crop({0, 0, 200, 200});
  chain.ResizeTo({224, 224}, Interpolation::kBilinear);
  ASSERT_EQ(chain.passes().size(), 2u);
  EXPECT_EQ(chain.passes()[1].input, (Size{200, 200}));
  EXPECT_EQ(chain.size(), (Size{224, 224}));
}

TEST(GeometryTest, WhatWasCroppedAwayDoesNotComeBackWithPadding) {
  GeometryChain chain = ChainOf({100, 100});
  chain.ResizeTo({80, 80}, Interpolation::kBilinear);
  chain.Crop({20, 20, 40, 40});
  chain.Crop({-10, -10, 60, 60});
  ASSERT_EQ(chain.passes().size(), 2u);
  EXPECT_EQ(chain.passes()[1].input, (Size{40, 40}));
  EXPECT_EQ(chain.passes()[1].window, (Rect{-10, -10, 60, 60}));
}

TEST(GeometryTest, ResizingToTheSameSizeDoesNothing) {
  GeometryChain chain = ChainOf({100, 80});
  chain.ResizeTo({100, 80}, Interpolation::kBicubic);
  EXPECT_TRUE(chain.passes()[0].changes_nothing());
}

TEST(GeometryTest, SourceRegionsStayWithinTheBox) {
  std::mt19937 random(7);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  for (int i = 0; i < 2000; ++i) {
    Pass pass;
    pass.input = {1 + below(300), 1 + below(300)};
    pass.box = {below(pass.input.width), below(pass.input.height), 1, 1};
    pass.box.width += below(pass.input.width - pass.box.x);
    pass.box.height += below(pass.input.height - pass.box.y);
    pass.size = {1 + below(100), 1 + below(100)};
    pass.window = {below(200) - 100, below(200) - 100, 1 + below(300), 1 + below(300)};
    pass.mirror_box = below(2) == 1;
    pass.interpolation = static_cast<Interpolation>(below(3));
    const Rect source = SourceRegion(pass, 1 << below(4));
    ASSERT_GE(source.x, pass.box.x);
    ASSERT_GE(source.y, pass.box.y);
    ASSERT_LE(source.x + source.width, pass.box.x + pass.box.width);
    ASSERT_LE(source.y + source.height, pass.box.y + pass.box.height);
    ASSERT_GE(source.width, 1);
    ASSERT_GE(source.height, 1);
  }
}

}  // namespace
}  // namespace fullbore::loader
