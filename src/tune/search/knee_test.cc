#include "tune/search/knee.h"

#include <gtest/gtest.h>

namespace fullbore::tune {
namespace {

TEST(KneeTest, IsWhereTheRateComesNearTheBest) {
  const auto line =
      FitLine({{32, StepLine{0.01, 0.0001}.RateAt(32)}, {128, StepLine{0.01, 0.0001}.RateAt(128)}});
  ASSERT_TRUE(line.has_value());
  EXPECT_NEAR(line->a, 0.01, 1e-9);
  EXPECT_NEAR(line->b, 0.0001, 1e-11);
  const double best = line->RateAt(4096);
  const auto knee = Knee(*line, best, 0.95);
  ASSERT_TRUE(knee.has_value());
  EXPECT_NEAR(line->RateAt(*knee), 0.95 * best, 1e-6 * best);
}

TEST(KneeTest, NoiseMakesNeitherPartNegative) {
  const auto falling = FitLine({{32, 32}, {64, 80}});  // the step became shorter
  ASSERT_TRUE(falling.has_value());
  EXPECT_EQ(falling->b, 0);
  const auto steep = FitLine({{32, 3200}, {64, 3000}});
  ASSERT_TRUE(steep.has_value());
  EXPECT_EQ(steep->a, 0);
  EXPECT_FALSE(FitLine({{32, 100}, {32, 101}}).has_value());
}

}  // namespace
}  // namespace fullbore::tune
