#include "tune/proof/fail_if.h"

#include <gmock/gmock.h>

namespace fullbore::tune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<FailIf> Of(const std::vector<std::string>& texts) { return ParseFailIf(texts).value(); }

MeasuredChange Speed(double times, double low, double high) {
  return {Proof::Gain{times, low, high}, {}, {}};
}

TEST(FailIfTest, SlowerHoldsWhereTheWholeIntervalIs) {
  const auto conditions = Of({"slower", "slower 3%"});
  EXPECT_THAT(WhatHolds(conditions, Speed(0.9, 0.85, 0.95)), ElementsAre("slower", "slower 3%"));
  EXPECT_THAT(WhatHolds(conditions, Speed(0.97, 0.95, 0.99)), ElementsAre("slower")) << "by less, perhaps";
  EXPECT_THAT(WhatHolds(conditions, Speed(0.9, 0.7, 1.1)), IsEmpty()) << "not proven";
  EXPECT_THAT(WhatHolds(conditions, Speed(1.2, 1.1, 1.3)), IsEmpty());
  EXPECT_THAT(WhatHolds(conditions, {}), IsEmpty());
}

TEST(FailIfTest, NotFasterHoldsUnlessTheWholeIntervalIs) {
  const auto conditions = Of({"not-faster", "not-faster 10%"});
  EXPECT_THAT(WhatHolds(conditions, Speed(1.2, 1.15, 1.25)), IsEmpty());
  EXPECT_THAT(WhatHolds(conditions, Speed(1.2, 1.05, 1.35)), ElementsAre("not-faster 10%"));
  EXPECT_THAT(WhatHolds(conditions, Speed(1.2, 0.9, 1.5)), ElementsAre("not-faster", "not-faster 10%"));
  EXPECT_THAT(WhatHolds(conditions, {}), ElementsAre("not-faster", "not-faster 10%"));
}

TEST(FailIfTest, NotProvenIsAboutWhatTheOthersAsk) {
  EXPECT_THAT(WhatHolds(Of({"not-proven"}), Speed(1.0, 0.9, 1.1)), ElementsAre("not-proven"));
  EXPECT_THAT(WhatHolds(Of({"not-proven"}), Speed(0.8, 0.7, 0.9)), IsEmpty()) << "slower is proven";
  EXPECT_THAT(WhatHolds(Of({"not-proven"}), {}), ElementsAre("not-proven"));
  const auto conditions = Of({"slower 3%", "not-proven"});
  EXPECT_THAT(WhatHolds(conditions, Speed(1.0, 0.98, 1.02)), IsEmpty()) << "at most 2 % slower";
  EXPECT_THAT(WhatHolds(conditions, Speed(0.98, 0.95, 1.01)), ElementsAre("not-proven"));
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

TEST(FailIfTest, SamplesASecondAreBelowWhereTheyAreSoMeasuredAndItIsNoNoise) {
  const auto conditions = Of({"samples_per_s < -3%"});
  EXPECT_EQ(conditions.front().threshold, 0.97);
  EXPECT_EQ(Of({"samples_per_s<-3%"}).front().threshold, 0.97);
  EXPECT_THAT(WhatHolds(conditions, Speed(0.94, 0.90, 0.98)), ElementsAre("samples_per_s < -3%"));
  EXPECT_THAT(WhatHolds(conditions, Speed(0.94, 0.87, 1.01)), IsEmpty()) << "perhaps noise";
  EXPECT_THAT(WhatHolds(conditions, Speed(0.98, 0.97, 0.99)), IsEmpty()) << "by less";
  EXPECT_THAT(ThresholdsOf(conditions), ElementsAre(1));
}

TEST(FailIfTest, WhatIsSlowerInUndisturbedStepsIsSlower) {
  MeasuredChange noisy = Speed(0.95, 0.7, 1.2);
  noisy.undisturbed = Proof::Gain{0.94, 0.93, 0.95};
  EXPECT_THAT(WhatHolds(Of({"slower", "slower 3%", "samples_per_s < -3%"}), noisy),
              ElementsAre("slower", "slower 3%", "samples_per_s < -3%"));
  noisy.undisturbed = Proof::Gain{0.99, 0.96, 1.02};
  EXPECT_THAT(WhatHolds(Of({"slower", "samples_per_s < -3%"}), noisy), IsEmpty());
}

TEST(FailIfTest, AShareHasMovedWhereItsWholeIntervalHas) {
  const auto conditions = Of({"data_wait > +3pt", "backward < -2pt"});
  const auto moved = [](double data_low, double data_high, double low, double high) {
    return MeasuredChange{{}, {{"data_wait", {data_low, data_high}}, {"backward", {low, high}}}, {}};
  };
  EXPECT_THAT(WhatHolds(conditions, moved(0.04, 0.06, -0.05, -0.03)),
              ElementsAre("data_wait > +3pt", "backward < -2pt"));
  EXPECT_THAT(WhatHolds(conditions, moved(0.02, 0.06, -0.05, -0.01)), IsEmpty()) << "perhaps";
  EXPECT_THAT(WhatHolds(conditions, moved(-0.06, -0.04, 0.03, 0.05)), IsEmpty()) << "the other way";
  EXPECT_THAT(WhatHolds(conditions, {}), IsEmpty());
  EXPECT_FALSE(IsKnown(conditions.front(), Speed(1, 1, 1))) << "a speed says nothing of a share";
  EXPECT_THAT(ThresholdsOf(conditions), ElementsAre(1)) << "nor does a share ask for a speed";
}

TEST(FailIfTest, RefusesWhatItDoesNotKnowWithTheList) {
  for (const char* text : {"",
                           "faster",
                           "slower 3",
                           "slower 0%",
                           "slower 100%",
                           "slower -3%",
                           "not-proven 3%",
                           "slower 3% 4%",
                           "slow",
                           "slower:",
                           "not-faster x%",
                           "samples_per_s < 3%",
                           "samples_per_s > +3%",
                           "samples_per_s < -3pt",
                           "data_wait > 3pt",
                           "data_wait > +3%",
                           "data_wait > -3pt",
                           "waiting > +3pt",
                           "< -3%",
                           "data_wait > +0pt"}) {
    const auto parsed = ParseFailIf({"slower", text});
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().hint, testing::HasSubstr("not-faster 10%"));
  }
}

}  // namespace
}  // namespace fullbore::tune
