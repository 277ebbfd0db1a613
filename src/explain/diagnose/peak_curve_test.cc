#include "explain/diagnose/peak_curve.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/held.h"

namespace fullbore::diagnose {
namespace {

using testing::AHeldMemory;
using testing::APeak;
using testing::APeakOnALine;
using testing::kMB;

BatchSize Batch(double rows, double width) { return {rows, width, rows * width}; }

// Attention whose scores are written down.
ReachedPeak APeakOnAParabola(double rows, double width) {
  return APeak(rows, width, 400 * kMB + rows * width * (0.02 + 0.0002 * width) * kMB);
}

TEST(PeakCurveTest, OneSizeGrowsInProportionWithinWhatMayStay) {
  const auto curve = PeakCurve::Through(AHeldMemory({APeak(4, 1000, 800 * kMB)}));
  ASSERT_TRUE(curve);
  EXPECT_EQ(curve->sizes(), 1U);
  const PeakCurve::Range twice = curve->At(Batch(8, 1000));
  EXPECT_DOUBLE_EQ(twice.expected, 1200 * kMB);  // weights, gradients and states stay
  EXPECT_DOUBLE_EQ(twice.high, 1300 * kMB);      // the gradients were not there yet
  EXPECT_NEAR(twice.low, 1066 * kMB, 1 * kMB);   // the optimizer's temporaries and a workspace are in it
}

TEST(PeakCurveTest, OneSizeLeavesOpenHowMemoryGrowsWithTheLengthOfRows) {
  const auto curve = PeakCurve::Through(AHeldMemory({APeak(4, 1000, 800 * kMB)}));
  ASSERT_TRUE(curve);
  EXPECT_DOUBLE_EQ(curve->At(Batch(4, 2000)).expected, 1200 * kMB);
  EXPECT_DOUBLE_EQ(curve->At(Batch(4, 2000)).high, 300 * kMB + 4 * 500 * kMB);
}

TEST(PeakCurveTest, APeakThatIsTheOptimizersOwnNeedNotGrow) {
  const auto curve = PeakCurve::Through(AHeldMemory({APeak(4, 1000, 480 * kMB)}));
  ASSERT_TRUE(curve);
  EXPECT_DOUBLE_EQ(curve->At(Batch(64, 1000)).low, 480 * kMB);
}

TEST(PeakCurveTest, ALineThroughManySizesIsNarrow) {
  const auto curve = PeakCurve::Through(AHeldMemory(
      {APeakOnALine(4, 1000), APeakOnALine(4, 2000), APeakOnALine(4, 3000), APeakOnALine(4, 5000)}));
  ASSERT_TRUE(curve);
  const PeakCurve::Range range = curve->At(Batch(4, 10'000));
  EXPECT_NEAR(range.expected, 4400 * kMB, 1);
  EXPECT_NEAR(range.low, range.expected, 1);
  EXPECT_NEAR(range.high, range.expected, 1);
}

TEST(PeakCurveTest, AParabolaIsToldFromALine) {
  const auto curve = PeakCurve::Through(AHeldMemory({APeakOnAParabola(4, 1000), APeakOnAParabola(4, 2000),
                                                     APeakOnAParabola(4, 3000), APeakOnAParabola(4, 5000)}));
  ASSERT_TRUE(curve);
  EXPECT_NEAR(curve->At(Batch(4, 10'000)).expected, APeakOnAParabola(4, 10'000).bytes, 1 * kMB);
}

TEST(PeakCurveTest, RowsAloneDoNotShowHowMemoryGrowsWithTheirLength) {
  const auto curve =
      PeakCurve::Through(AHeldMemory({APeakOnALine(2, 1000), APeakOnALine(4, 1000), APeakOnALine(8, 1000)}));
  ASSERT_TRUE(curve);
  EXPECT_NEAR(curve->At(Batch(16, 1000)).high, 2000 * kMB, 1);
  EXPECT_NEAR(curve->At(Batch(8, 2000)).expected, 2000 * kMB, 1);
  EXPECT_NEAR(curve->At(Batch(8, 2000)).high, 400 * kMB + 4 * 800 * kMB, 1);
}

TEST(PeakCurveTest, TwoSizesMayBeSteeperThanTheirLine) {
  const auto curve = PeakCurve::Through(AHeldMemory({APeak(2, 1000, 500 * kMB), APeak(4, 1000, 600 * kMB)}));
  ASSERT_TRUE(curve);
  EXPECT_NEAR(curve->At(Batch(8, 1000)).expected, 800 * kMB, 1);
  EXPECT_NEAR(curve->At(Batch(8, 1000)).high, 900 * kMB, 1);  // 300 MB stay
}

TEST(PeakCurveTest, PeaksOnNoLineHaveNone) {
  EXPECT_FALSE(PeakCurve::Through(
      AHeldMemory({APeak(4, 1000, 500 * kMB), APeak(4, 1010, 900 * kMB), APeak(4, 4000, 910 * kMB)})));
  EXPECT_FALSE(PeakCurve::Through(AHeldMemory({})));
}

TEST(PeakCurveTest, TheFirstStepDoesNotCountBesideOthersWhereItHadNoStates) {
  HeldMemory held = AHeldMemory({APeakOnALine(4, 500), APeakOnALine(4, 1000), APeakOnALine(4, 2000)});
  held.peaks[0].bytes -= 200 * kMB;
  held.peaks[0].first = true;
  const auto curve = PeakCurve::Through(held);
  ASSERT_TRUE(curve);
  EXPECT_EQ(curve->sizes(), 2U);
  held.peaks.resize(1);
  ASSERT_TRUE(PeakCurve::Through(held));
  EXPECT_DOUBLE_EQ(PeakCurve::Through(held)->At(Batch(4, 500)).expected, 600 * kMB);
}

TEST(PeakCurveTest, ImagesGrowWithTheirElements) {
  HeldMemory held = AHeldMemory({});
  held.peaks = {{{8, 0, 8 * 1e6}, 600 * kMB, false},
                {{16, 0, 16 * 1e6}, 800 * kMB, false},
                {{32, 0, 32 * 1e6}, 1200 * kMB, false}};
  const auto curve = PeakCurve::Through(held);
  ASSERT_TRUE(curve);
  EXPECT_NEAR(curve->At({64, 0, 64 * 1e6}).high, 2000 * kMB, 1);
}

}  // namespace
}  // namespace fullbore::diagnose
