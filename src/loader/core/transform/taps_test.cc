#include "loader/core/transform/taps.h"

#include <gtest/gtest.h>

#include <numeric>

namespace fullbore::loader {
namespace {

Axis AxisOver(int length, int out_length, Interpolation interpolation = Interpolation::kBilinear) {
  Axis axis;
  axis.length = length;
  axis.out_length = out_length;
  axis.count = out_length;
  axis.interpolation = interpolation;
  axis.end = length;
  return axis;
}

std::vector<double> WeightsAt(const Taps& taps, size_t position) {
  const auto n = static_cast<size_t>(taps.taps);
  std::vector<double> weights;
  for (size_t k = 0; k < n; ++k) {
    weights.push_back(taps.weights[position * n + k] / static_cast<double>(1 << taps.precision));
  }
  return weights;
}

TEST(TapsTest, HalvingWeighsFourPixelsOneThreeThreeOne) {
  TapBuilder builder;
  const Taps& taps = builder.Build(AxisOver(8, 4));
  EXPECT_EQ(taps.start[1], 1);
  const std::vector<double> weights = WeightsAt(taps, 1);
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_NEAR(weights[0], 0.125, 1e-4);
  EXPECT_NEAR(weights[1], 0.375, 1e-4);
  EXPECT_NEAR(weights[2], 0.375, 1e-4);
  EXPECT_NEAR(weights[3], 0.125, 1e-4);
}

TEST(TapsTest, WeightsOfEveryPositionSumToOne) {
  TapBuilder builder;
  for (const Interpolation interpolation :
       {Interpolation::kNearest, Interpolation::kBilinear, Interpolation::kBicubic}) {
    for (const int in : {1, 2, 3, 7, 100, 500, 65'500}) {
      for (const int out : {1, 2, 5, 224, 333}) {
        const Taps& taps = builder.Build(AxisOver(in, out, interpolation));
        for (size_t i = 0; i < static_cast<size_t>(out); ++i) {
          const std::vector<double> weights = WeightsAt(taps, i);
          ASSERT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1, 0.5 / 255) << in << " " << out;
        }
      }
    }
  }
}

TEST(TapsTest, AMirroredCropReadsTheSamePixelsFromTheOtherEnd) {
  TapBuilder plain, mirrored;
  Axis axis = AxisOver(500, 224, Interpolation::kBicubic);
  const Taps& a = plain.Build(axis);
  axis.mirror_in = true;
  const Taps& b = mirrored.Build(axis);
  for (size_t i = 0; i < 224; ++i) {
    std::vector<double> forward(500), backward(500);
    const std::vector<double> wa = WeightsAt(a, i), wb = WeightsAt(b, i);
    for (size_t k = 0; k < wa.size(); ++k) forward[static_cast<size_t>(a.start[i]) + k] = wa[k];
    for (size_t k = 0; k < wb.size(); ++k) backward[499 - static_cast<size_t>(b.start[i]) - k] = wb[k];
    for (size_t x = 0; x < 500; ++x) ASSERT_NEAR(forward[x], backward[x], 1e-4) << i << " " << x;
  }
}

TEST(TapsTest, AMirroredWindowComesInReverse) {
  TapBuilder plain, mirrored;
  Axis axis = AxisOver(100, 33);
  const Taps& a = plain.Build(axis);
  axis.mirror_out = true;
  const Taps& b = mirrored.Build(axis);
  for (size_t i = 0; i < 33; ++i) {
    EXPECT_EQ(a.start[i], b.start[32 - i]);
    EXPECT_EQ(WeightsAt(a, i), WeightsAt(b, 32 - i));
  }
}

TEST(TapsTest, NearestTakesOnePixel) {
  TapBuilder builder;
  const Taps& taps = builder.Build(AxisOver(4, 2, Interpolation::kNearest));
  EXPECT_EQ(taps.start[0] + (WeightsAt(taps, 0)[1] == 1), 1);  // centres at 1 and 3 lie on pixels 1 and 3
  EXPECT_EQ(taps.start[1] + (WeightsAt(taps, 1)[1] == 1), 3);
}

TEST(TapsTest, FiltersNeverReachOutOfTheCrop) {
  TapBuilder builder;
  Axis axis = AxisOver(20, 50);
  axis.origin = 10;
  axis.end = 40;
  const Taps& taps = builder.Build(axis);
  for (size_t i = 0; i < 50; ++i) {
    const std::vector<double> weights = WeightsAt(taps, i);
    for (size_t k = 0; k < weights.size(); ++k) {
      const int x = taps.start[i] + static_cast<int>(k);
      if (x < 10 || x >= 30) {
        EXPECT_EQ(weights[k], 0) << i << " " << x;
      }
    }
  }
}

TEST(TapsTest, OnlyWhatIsNeededIsAskedFor) {
  Axis axis = AxisOver(1000, 100);
  axis.first = 40;
  axis.count = 20;
  const Span span = NeededBy(axis, 0);
  EXPECT_GE(span.begin, 385);
  EXPECT_LE(span.end, 615);
  // What is not needed changes nothing.
  TapBuilder all, part;
  const Taps& wide = all.Build(axis);
  axis.begin = span.begin;
  axis.end = span.end;
  const Taps& narrow = part.Build(axis);
  EXPECT_EQ(wide.weights, narrow.weights);
}

}  // namespace
}  // namespace fullbore::loader
