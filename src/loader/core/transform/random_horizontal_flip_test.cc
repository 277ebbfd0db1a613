#include "loader/core/transform/random_horizontal_flip.h"

#include <gtest/gtest.h>

#include <cmath>

#include "loader/core/transform/testing/samples.h"

namespace fullbore::loader {
namespace {

TEST(RandomHorizontalFlipTest, FlipsComeAsOftenAsAsked) {
  for (const double p : {0.0, 0.3, 1.0}) {
    const std::vector<Transform> list = {RandomHorizontalFlip{p}};
    int flips = 0;
    for (int i = 0; i < kSamples; ++i) flips += DrawFlip({p}, Draws(Seed(i), list, 0)) ? 1 : 0;
    EXPECT_NEAR(flips, kSamples * p, 5 * std::sqrt(kSamples * p * (1 - p)));
  }
}

}  // namespace
}  // namespace fullbore::loader
