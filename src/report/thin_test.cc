#include "report/thin.h"

#include <gmock/gmock.h>

namespace fullbore::report {
namespace {

using record::Reading;
using record::StepWindow;

std::vector<Reading> Ramp(int64_t count) {
  std::vector<Reading> readings;
  for (int64_t i = 0; i < count; ++i) readings.push_back({i * 1000, static_cast<double>(i % 7)});
  return readings;
}

TEST(ThinTest, AShortSeriesStaysAsItIs) { EXPECT_EQ(Thin(Ramp(20), 10).size(), 20u); }

TEST(ThinTest, AnEmptySeriesStaysEmpty) { EXPECT_TRUE(Thin({}, 10).empty()); }

TEST(ThinTest, ALongSeriesIsBoundedAndInOrder) {
  const std::vector<Reading> thin = Thin(Ramp(100'000), 400);
  EXPECT_LE(thin.size(), 800u);
  EXPECT_GE(thin.size(), 700u);
  for (size_t i = 1; i < thin.size(); ++i) EXPECT_LT(thin[i - 1].t_ns, thin[i].t_ns);
}

TEST(ThinTest, ASpikeOfOneReadingSurvives) {
  std::vector<Reading> readings = Ramp(100'000);
  readings[54'321].value = 1e6;
  readings[70'000].value = -5;
  double high = 0, low = 0;
  for (const Reading& reading : Thin(readings, 400)) {
    high = std::max(high, reading.value);
    low = std::min(low, reading.value);
  }
  EXPECT_EQ(high, 1e6);
  EXPECT_EQ(low, -5);
}

TEST(MergeTest, SumsStayExact) {
  std::vector<StepWindow> windows;
  for (int64_t i = 0; i < 1003; ++i) {
    StepWindow window;
    window.begin_ns = i * 100;
    window.end_ns = i * 100 + 100;
    window.first_step = i;
    window.steps = 1;
    window.samples = 8;
    window.min_wall_ns = window.max_wall_ns = 50 + i;
    window.share_ns[record::Index(record::Share::kDataWait)] = 60;
    windows.push_back(window);
  }
  const std::vector<StepWindow> merged = Merge(windows, 100);
  EXPECT_LE(merged.size(), 100u);
  int64_t steps = 0, samples = 0, wait_ns = 0;
  for (const StepWindow& window : merged) {
    steps += window.steps;
    samples += window.samples;
    wait_ns += window.share_ns[record::Index(record::Share::kDataWait)];
  }
  EXPECT_EQ(steps, 1003);
  EXPECT_EQ(samples, 1003 * 8);
  EXPECT_EQ(wait_ns, 1003 * 60);
  EXPECT_EQ(merged.front().begin_ns, 0);
  EXPECT_EQ(merged.back().end_ns, 1003 * 100);
  EXPECT_EQ(merged.front().min_wall_ns, 50);
  EXPECT_EQ(merged.back().max_wall_ns, 50 + 1002);
}

TEST(MergeTest, FewWindowsStayAsTheyAre) {
  EXPECT_EQ(Merge(std::vector<StepWindow>(7), 500).size(), 7u);
  EXPECT_TRUE(Merge({}, 500).empty());
}

}  // namespace
}  // namespace fullbore::report
