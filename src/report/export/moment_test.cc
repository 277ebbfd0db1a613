#include "report/export/moment.h"

#include <gtest/gtest.h>

namespace fullbore::exporting {
namespace {

TEST(MomentTest, TimesHaveUnits) {
  EXPECT_EQ(ParseMoment("1.5s")->ns, 1'500'000'000);
  EXPECT_EQ(ParseMoment("200ms")->ns, 200'000'000);
  EXPECT_EQ(ParseMoment("30us")->ns, 30'000);
  EXPECT_EQ(ParseMoment("7ns")->ns, 7);
}

TEST(MomentTest, StepsHaveNumbers) {
  EXPECT_EQ(ParseMoment("step:12")->step, 12);
  EXPECT_FALSE(ParseMoment("0s")->step.has_value());
}

TEST(MomentTest, AnythingElseIsAnErrorWithAHint) {
  for (const char* text :
       {"", "12", "s", "-1s", "step:", "step:x", "step:-1", "1e300s", "nans", "perfetto"}) {
    const auto moment = ParseMoment(text);
    ASSERT_FALSE(moment.ok()) << text;
    EXPECT_EQ(moment.error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(moment.error().hint.empty());
  }
}

}  // namespace
}  // namespace fullbore::exporting
