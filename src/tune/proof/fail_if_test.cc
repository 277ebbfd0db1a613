#include "tune/proof/fail_if.h"

#include <gmock/gmock.h>

namespace fullbore::tune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<FailIf> Of(const std::vector<std::string>& texts) { return ParseFailIf(texts).value(); }

using Gain = Proof::Gain;

TEST(FailIfTest, SlowerHoldsWhereTheWholeIntervalIs) {
  const auto conditions = Of({"slower", "slower 3%"});
  EXPECT_THAT(WhatHolds(conditions, Gain{0.9, 0.85, 0.95}), ElementsAre("slower", "slower 3%"));
  EXPECT_THAT(WhatHolds(conditions, Gain{0.97, 0.95, 0.99}), ElementsAre("slower")) << "by less, perhaps";
  EXPECT_THAT(WhatHolds(conditions, Gain{0.9, 0.7, 1.1}), IsEmpty()) << "not proven";
  EXPECT_THAT(WhatHolds(conditions, Gain{1.2, 1.1, 1.3}), IsEmpty());
  EXPECT_THAT(WhatHolds(conditions, std::nullopt), IsEmpty());
}

TEST(FailIfTest, NotFasterHoldsUnlessTheWholeIntervalIs) {
  const auto conditions = Of({"not-faster", "not-faster 10%"});
  EXPECT_THAT(WhatHolds(conditions, Gain{1.2, 1.15, 1.25}), IsEmpty());
  EXPECT_THAT(WhatHolds(conditions, Gain{1.2, 1.05, 1.35}), ElementsAre("not-faster 10%"));
  EXPECT_THAT(WhatHolds(conditions, Gain{1.2, 0.9, 1.5}), ElementsAre("not-faster", "not-faster 10%"));
  EXPECT_THAT(WhatHolds(conditions, std::nullopt), ElementsAre("not-faster", "not-faster 10%"));
}

TEST(FailIfTest, NotProvenIsAboutWhatTheOthersAsk) {
  EXPECT_THAT(WhatHolds(Of({"not-proven"}), Gain{1.0, 0.9, 1.1}), ElementsAre("not-proven"));
  EXPECT_THAT(WhatHolds(Of({"not-proven"}), Gain{0.8, 0.7, 0.9}), IsEmpty()) << "slower is proven";
  EXPECT_THAT(WhatHolds(Of({"not-proven"}), std::nullopt), ElementsAre("not-proven"));
  const auto conditions = Of({"slower 3%", "not-proven"});
  EXPECT_THAT(WhatHolds(conditions, Gain{1.0, 0.98, 1.02}), IsEmpty()) << "at most 2 % slower";
  EXPECT_THAT(WhatHolds(conditions, Gain{0.98, 0.95, 1.01}), ElementsAre("not-proven"));
}

TEST(FailIfTest, AsksOfTheMeasurementWhatTheConditionsWant) {
  EXPECT_THAT(ThresholdsOf({}), ElementsAre(1));
  EXPECT_THAT(ThresholdsOf(Of({"not-proven"})), ElementsAre(1));
  EXPECT_THAT(ThresholdsOf(Of({"slower 3%", "not-faster 10%", "not-proven"})), ElementsAre(0.97, 1.1));
}

TEST(FailIfTest, AColonNeedsNoQuotes) {
  EXPECT_EQ(Of({"slower:3%"}).front().threshold, 0.97);
  EXPECT_EQ(Of({" slower   2.5 % "}).front().threshold, 0.975);
}

TEST(FailIfTest, RefusesWhatItDoesNotKnowWithTheList) {
  for (const char* text : {"", "faster", "slower 3", "slower 0%", "slower 100%", "slower -3%",
                           "not-proven 3%", "slower 3% 4%", "slow", "slower:", "not-faster x%"}) {
    const auto parsed = ParseFailIf({"slower", text});
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().hint, testing::HasSubstr("not-faster 10%"));
  }
}

}  // namespace
}  // namespace fullbore::tune
