#include "watch/alert/sight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "record/metrics.h"
#include "watch/alert/past.h"

namespace fullbore::watch {
namespace {

using record::Labels;
using record::Metric;
using ::testing::DoubleEq;
using ::testing::Eq;
using ::testing::Optional;

record::Series ASeries(Metric metric, const Labels& labels, const std::vector<double>& each_second) {
  record::Series series{record::KeyOf(metric, labels), {}};
  for (const double value : each_second) {
    const auto t_ns = static_cast<int64_t>(series.readings.size() + 1) * kNsPerSecond;
    series.readings.push_back({t_ns, value});
  }
  return series;
}

class MomentTest : public ::testing::Test {
 protected:
  MomentTest() { recording_.stages.emplace_back().end_ns = 10 * kNsPerSecond; }

  record::Stage& stage() { return recording_.stages.back(); }
  Moment At(int64_t s, bool cut_off = false) const { return {recording_, past_, s * kNsPerSecond, cut_off}; }

  record::Recording recording_;
  Past past_;
};

TEST_F(MomentTest, AMeanCoversWhatCameBeforeAndNothingLater) {
  const record::Series series = ASeries(Metric::kGpuUtilization, {}, {1, 2, 3, 100});
  EXPECT_THAT(At(3).Mean(series, 2 * kNsPerSecond), Optional(DoubleEq(2.5)));
  EXPECT_THAT(At(3).Mean(series, 60 * kNsPerSecond), Optional(DoubleEq(2)));
  EXPECT_EQ(At(9).Mean(series, 2 * kNsPerSecond), std::nullopt) << "nothing was read in that time";
}

TEST_F(MomentTest, ARunEndsWithItsStageOrWhenNobodyRecordsIt) {
  EXPECT_FALSE(At(20).ended()) << "it goes on, as far as is known";
  EXPECT_TRUE(At(5, /*cut_off=*/true).ended());
  stage().state = record::StageState::kEnded;
  EXPECT_FALSE(At(9).ended());
  EXPECT_TRUE(At(10).ended());
}

TEST_F(MomentTest, AGpuIsOursWhereTheCommandHoldsMemory) {
  const auto key = [](const char* gpu) { return record::KeyOf(Metric::kGpuUtilization, {{"gpu", gpu}}); };
  EXPECT_TRUE(At(3).IsOurs(key("0"))) << "nobody knows whose it is";
  stage().series = {ASeries(Metric::kGpuProcessMemory, {{"gpu", "0"}, {"owner", "command"}}, {0, 1e9, 1e9}),
                    ASeries(Metric::kGpuProcessMemory, {{"gpu", "1"}, {"owner", "others"}}, {1e9, 1e9, 1e9})};
  EXPECT_TRUE(At(1).IsOurs(key("1"))) << "before the command holds any";
  EXPECT_TRUE(At(3).IsOurs(key("0")));
  EXPECT_FALSE(At(3).IsOurs(key("1")));
  EXPECT_TRUE(At(3).IsOurs(record::KeyOf(Metric::kMemoryUsed))) << "of no GPU";
}

TEST_F(MomentTest, CoresAreThoseOfTheWholeCommandSinceThen) {
  stage().series = {ASeries(Metric::kProcessCpu, {{"role", "trainer"}}, {4, 4, 1, 1, 1}),
                    ASeries(Metric::kProcessCpu, {{"role", "worker"}}, {2, 2, 0.5, 0.5, 0.5}),
                    ASeries(Metric::kProcessCpu, {{"rank", "0"}}, {9, 9, 9, 9, 9})};
  EXPECT_THAT(At(5).CoresSince(2 * kNsPerSecond), Optional(DoubleEq(1.5)));
  EXPECT_EQ(At(5).CoresSince(5 * kNsPerSecond), std::nullopt) << "no reading is as new";
}

TEST_F(MomentTest, OfTheLastStretchOneDiagnosisIsMade) {
  const Moment moment = At(9);
  EXPECT_EQ(&moment.DiagnosisOf(5 * kNsPerSecond), &moment.DiagnosisOf(5 * kNsPerSecond));
  EXPECT_NE(&moment.DiagnosisOf(5 * kNsPerSecond), &moment.DiagnosisOf(6 * kNsPerSecond));
}

TEST_F(MomentTest, AllButTheAlertAboutTheEndIsOverWithTheRun) {
  stage().state = record::StageState::kEnded;
  stage().exit_status = 1;
  Rule rule;
  rule.condition = LostDevice{};
  EXPECT_THAT(LookAt(rule, At(10)), ::testing::AllOf(::testing::Field(&Sight::state, Sight::State::kOver),
                                                     ::testing::Field(&Sight::what, "the run has ended")));
  rule.condition = RunFailed{};
  EXPECT_THAT(LookAt(rule, At(10)), ::testing::Field(&Sight::state, Sight::State::kHolds));
}

TEST(WindowTest, IsTheRulesTimeBetweenFiveSecondsAndAMinute) {
  Rule rule;
  for (const auto& [for_s, window_s] : std::map<int64_t, int64_t>{{0, 5}, {20, 20}, {600, 60}}) {
    rule.for_ns = for_s * kNsPerSecond;
    EXPECT_THAT(WindowOf(rule), Eq(window_s * kNsPerSecond));
  }
}

}  // namespace
}  // namespace fullbore::watch
