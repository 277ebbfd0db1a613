#include "plan/cores.h"

#include <gtest/gtest.h>

namespace fullbore::plan {
namespace {

using replay::Outlook;

TEST(CoresTest, SecondThreadsOfCoresYieldAQuarter) {
  EXPECT_DOUBLE_EQ(Capacity({4, 2}, Outlook::kExpected), 2.5);
  EXPECT_DOUBLE_EQ(Capacity({4, 2}, 2, Outlook::kExpected), 2) << "the first threads come first";
  EXPECT_DOUBLE_EQ(Capacity({4, 1}, Outlook::kExpected), 4);
}

TEST(CoresTest, WhatIsNotKnownIsOnlyDoubtedCautiously) {
  EXPECT_DOUBLE_EQ(Capacity({4, 0}, Outlook::kExpected), 4);
  EXPECT_LT(Capacity({4, 0}, Outlook::kCautious), 4);
}

TEST(CoresTest, OutlooksAreInOrder) {
  for (const double threads : {0.0, 1.0, 2.0}) {
    EXPECT_LE(Capacity({8, threads}, Outlook::kCautious), Capacity({8, threads}, Outlook::kExpected));
    EXPECT_LE(Capacity({8, threads}, Outlook::kExpected), Capacity({8, threads}, Outlook::kHopeful));
  }
}

TEST(CoresTest, AsManyCoresAsDoSoMuchDoSoMuch) {
  const Cores kind{4, 2};
  EXPECT_NEAR(CoresFor(Capacity(kind, Outlook::kExpected), kind, Outlook::kExpected), 4, 1e-9);
}

}  // namespace
}  // namespace fullbore::plan
