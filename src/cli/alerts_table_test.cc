#include "cli/alerts_table.h"

#include <gmock/gmock.h>

namespace fullbore::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Printed(const watch::Alert& alert, const std::optional<watch::Price>& price = {}) {
  testing::internal::CaptureStdout();
  PrintAlerts({alert}, {}, price);
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

watch::Alert Firing() {
  watch::Alert alert;
  alert.rule = "stalled";
  alert.fired_ns = 60'000'000'000;
  alert.what = "no step for 60 s";
  return alert;
}

TEST(PrintAlertsTest, SaysWhenItFiredAndThatItStillDoes) {
  EXPECT_THAT(Printed(Firing()), AllOf(HasSubstr("1970-01-01 00:01:00"), HasSubstr("still fires"),
                                       HasSubstr("stalled"), HasSubstr("no step for 60 s")));
}

TEST(PrintAlertsTest, SaysForHowLongOneHeld) {
  watch::Alert alert = Firing();
  alert.resolved_ns = alert.fired_ns + 90'000'000'000;
  EXPECT_THAT(Printed(alert), AllOf(HasSubstr("1 min 30 s"), Not(HasSubstr("still fires"))));
}

TEST(PrintAlertsTest, ARuleThatIsNamedLikeAnEscapeSequenceIsMadePrintable) {
  watch::Alert alert = Firing();
  alert.rule = "\x1b[2Jgone";
  EXPECT_THAT(Printed(alert), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace fullbore::cli
