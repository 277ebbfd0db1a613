#include "record/openmetrics.h"

#include <gmock/gmock.h>

#include <cmath>

namespace fullbore::record {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(OpenMetricsTest, SamplesOfAFamilyFollowOneAnother) {
  OpenMetrics page;
  page.AddGauge("a", "", "What a is.", {{"gpu", "0"}}, 1);
  page.AddGauge("b_seconds", "seconds", "What b is.", {}, 2);
  page.AddGauge("a", "", "", {{"gpu", "1"}}, 3);
  EXPECT_EQ(
      page.Text(),
      "# TYPE a gauge\n# HELP a What a is.\na{gpu=\"0\"} 1\na{gpu=\"1\"} 3\n"
      "# TYPE b_seconds gauge\n# UNIT b_seconds seconds\n# HELP b_seconds What b is.\nb_seconds{} 2\n# EOF\n");
}

TEST(OpenMetricsTest, CountersAndInfosHaveTheirEndings) {
  OpenMetrics page;
  page.Add("held_seconds", "counter", "seconds", "h", {}, 1.5);
  page.Add("gpu", "info", "", "h", {{"uuid", "x"}}, 1);
  EXPECT_THAT(page.Text(), HasSubstr("held_seconds_total{} 1.5\n"));
  EXPECT_THAT(page.Text(), HasSubstr("gpu_info{uuid=\"x\"} 1\n"));
}

TEST(OpenMetricsTest, WhateverAValueHoldsStaysInsideItsQuotes) {
  OpenMetrics page;
  page.AddGauge("a", "", "h", {{"unit", "q\" b\\ n\nx \xff\x1b"}}, 1);
  EXPECT_THAT(page.Text(), HasSubstr(R"(a{unit="q\" b\\ n x \\xff\\x1b"} 1)"));
}

TEST(OpenMetricsTest, WhatIsNoNumberAndWhatIsThereAlreadyAreLeftOut) {
  OpenMetrics page;
  page.AddGauge("a", "", "h", {}, std::nan(""));
  EXPECT_THAT(page.Text(), Not(HasSubstr("a{}")));
  page.AddGauge("a", "", "h", {}, 1);
  page.AddGauge("a", "", "h", {}, 2);
  EXPECT_THAT(page.Text(), HasSubstr("a{} 1\n"));
  EXPECT_THAT(page.Text(), Not(HasSubstr("a{} 2\n")));
}

TEST(OpenMetricsTest, BeyondTheLimitOnlyCounts) {
  OpenMetrics page(2);
  for (int i = 0; i < 5; ++i) page.AddGauge("a", "", "h", {{"i", std::to_string(i)}}, i);
  EXPECT_EQ(page.samples(), 2U);
  EXPECT_EQ(page.cut(), 3U);
  EXPECT_THAT(page.Text(), Not(HasSubstr("i=\"2\"")));
}

TEST(OpenMetricsTest, NamesEndInTheirUnitOnce) {
  EXPECT_EQ(PrometheusName(InfoOf(Metric::kGpuPower)), "fullbore_gpu_power_watts");
  EXPECT_EQ(PrometheusName(InfoOf(Metric::kDiskRead)), "fullbore_disk_read_bytes_per_second");
  EXPECT_EQ(PrometheusName(InfoOf(Metric::kLoad1)), "fullbore_load1");
}

}  // namespace
}  // namespace fullbore::record
