#include "serve/metrics_page.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/testing/scratch_directory.h"
#include "watch/testing/live_writer.h"

namespace fullbore::serve {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using watch::testing::LiveWriter;

class MetricsPageTest : public testing::Test {
 protected:
  // After enough looks that every live run has been seen.
  std::string Page(const MetricsLimits& limits = {}) {
    watch::RunsFolder folder({directory_.path()}, {});
    int64_t now_ns = MonotonicNs();
    for (int i = 0; i < 5; ++i) folder.Tick(now_ns += 20 * kNsPerSecond, WallNs());
    return MetricsPage(folder, limits);
  }
  static size_t CountOf(const std::string& part, const std::string& text) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }

  ScratchDirectory directory_;
};

TEST_F(MetricsPageTest, WithoutRunsItIsStillAnAnswer) {
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("fullbore_runs{state=\"running\"} 0\n"));
  EXPECT_THAT(page, EndsWith("# EOF\n"));
}

TEST_F(MetricsPageTest, ARunThatTrainsHasItsStepsSharesAndVerdict) {
  LiveWriter writer(directory_.path(), "a", 0.6);
  writer.Seconds(70);
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("fullbore_steps_total{run=\"a\"} 700\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_steps_per_second{run=\"a\"} 10\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_samples_per_second{run=\"a\"} 80\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_share_ratio{run=\"a\",rank=\"0\",share=\"data_wait\"} 0.6\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_finding_speedup_ratio{run=\"a\",finding=\"input-bound\""));
  EXPECT_THAT(page, HasSubstr("fullbore_runs{state=\"running\"} 1\n"));
}

TEST_F(MetricsPageTest, TheSamplesOfAFamilyFollowOneAnotherWhateverTheirRun) {
  LiveWriter a(directory_.path(), "a", 0.6), b(directory_.path(), "b", 0.1);
  a.Seconds(5);
  b.Seconds(5);
  const std::string page = Page();
  EXPECT_EQ(CountOf("# TYPE fullbore_steps counter\n", page), 1u);
  const size_t at = page.find("fullbore_steps_total{run=");
  ASSERT_NE(at, std::string::npos);
  const std::string next = page.substr(page.find('\n', at) + 1, 26);
  EXPECT_EQ(next, "fullbore_steps_total{run=\"");
}

TEST_F(MetricsPageTest, AnEndedRunIsCountedAndNothingElse) {
  LiveWriter writer(directory_.path(), "a", 0.6);
  writer.Seconds(5).End(0);
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("fullbore_runs{state=\"ended\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("run=\"a\"")));
}

TEST_F(MetricsPageTest, BeyondItsLimitsItSaysHowMuchIsLeftOut) {
  LiveWriter a(directory_.path(), "a", 0.6, 8), b(directory_.path(), "b", 0.6, 8),
      c(directory_.path(), "c", 0.6, 8);
  for (LiveWriter* writer : {&a, &b, &c}) writer->Seconds(5);
  const std::string page = Page({.runs = 2, .series_of_a_run = 3});
  EXPECT_EQ(CountOf("fullbore_steps_total{", page), 2u);
  EXPECT_THAT(page, HasSubstr("fullbore_cut_runs{} 1\n"));
  EXPECT_THAT(page, HasSubstr("fullbore_cut_series{} 14\n"));
}

// Whatever a file is called, it stays inside its quotes.
TEST_F(MetricsPageTest, ANameWithQuotesStaysOneLabel) {
  LiveWriter writer(directory_.path(), "a\"} 1 \\", 0.6);
  writer.Seconds(5);
  EXPECT_THAT(Page(), HasSubstr(R"(fullbore_steps_total{run="a\"} 1 \\"} 50)"));
}

}  // namespace
}  // namespace fullbore::serve
