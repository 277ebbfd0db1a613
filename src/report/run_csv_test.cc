#include "report/run_csv.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/clock.h"
#include "record/metrics.h"

namespace fullbore::report {
namespace {

using ::testing::HasSubstr;

// Two series with a reading each second, of which one is far above the others.
record::Recording WithReadings(int64_t count, int64_t spike) {
  record::Recording recording;
  record::Stage& stage = recording.stages.emplace_back();
  stage.name = "train";
  stage.begin_ns = 1000 * kNsPerSecond;
  for (const char* cpu : {"0", "1"}) {
    record::Series& series = stage.series.emplace_back();
    series.key = record::KeyOf(record::Metric::kCpuCoreUtilization, {{"cpu", cpu}});
    for (int64_t i = 0; i < count; ++i)
      series.readings.push_back({stage.begin_ns + i * kNsPerSecond, i == spike ? 0.99 : 0.4});
  }
  return recording;
}

TEST(SeriesCsvTest, HasEveryReadingThatFits) {
  const std::string csv = SeriesCsv(WithReadings(100, 7));
  EXPECT_TRUE(csv.starts_with(kSeriesColumns));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 2 * 100);
  EXPECT_THAT(csv, HasSubstr("\ntrain,cpu_core_utilization{cpu=1},ratio,99.000,0.4\n"));
}

TEST(SeriesCsvTest, ALongRunStaysBelowTheLimitAndKeepsItsSpikes) {
  constexpr size_t kMaxBytes = 100'000;
  const std::string csv = SeriesCsv(WithReadings(100'000, 77'777), kMaxBytes);
  EXPECT_LE(csv.size(), kMaxBytes + kSeriesColumns.size());
  EXPECT_GT(csv.size(), kMaxBytes / 3) << "and uses what it may";
  EXPECT_THAT(csv, HasSubstr("train,cpu_core_utilization{cpu=0},ratio,77777.000,0.99\n"));
  EXPECT_THAT(csv, HasSubstr("train,cpu_core_utilization{cpu=1},ratio,77777.000,0.99\n"));
}

TEST(SeriesCsvTest, AnEndlessNameDoesNotMakeItEndless) {
  record::Recording recording = WithReadings(1000, 7);
  recording.stages[0].name = std::string(1 << 20, 'x');
  EXPECT_EQ(SeriesCsv(recording, 1 << 20), kSeriesColumns);
}

TEST(SeriesCsvTest, ANameIsOneCellAndNoFormula) {
  record::Recording recording = WithReadings(1, 0);
  recording.stages[0].name = "=1+1,\"x\"";
  EXPECT_THAT(SeriesCsv(recording), HasSubstr("\n\"'=1+1,\"\"x\"\"\",cpu_core_utilization{cpu=0},"));
}

TEST(SeriesCsvTest, WithoutSeriesItHasItsColumns) { EXPECT_EQ(SeriesCsv({}), kSeriesColumns); }

record::Recording WithSteps() {
  record::Recording recording;
  record::Stage& stage = recording.stages.emplace_back();
  stage.name = "train";
  stage.begin_ns = 1000 * kNsPerSecond;
  record::RankInfo& rank = stage.ranks.emplace_back();
  rank.samples_known = true;
  record::Step step;
  step.index = 3;
  step.wall_ns = kNsPerSecond / 2;
  step.end_ns = stage.begin_ns + 2 * kNsPerSecond;
  step.samples = 16;
  step.share_ns[Index(record::Share::kDataWait)] = step.wall_ns / 4;
  step.share_ns[Index(record::Share::kBackward)] = step.wall_ns - step.wall_ns / 4;
  rank.steps.push_back(step);
  record::StepWindow& window = rank.windows.emplace_back();
  window.begin_ns = stage.begin_ns + kNsPerSecond;
  window.end_ns = step.end_ns;
  window.first_step = 2;
  window.steps = 2;
  window.samples = 32;
  window.min_wall_ns = window.max_wall_ns = step.wall_ns;
  window.share_ns[Index(record::Share::kForward)] = kNsPerSecond;
  return recording;
}

TEST(StepsCsvTest, HasTheWindowsThenTheStepsThatWereKept) {
  EXPECT_EQ(
      StepsCsv(WithSteps()),
      StepsColumns() +
          "train,0,window,2,2,1.000000,2.000000,32,0.500000000,0.500000000,0.500000000,0.000000,0.000000,"
          "0.000000,0.000000,0.000000,0.000000,0.000000,0.000000,0.000000,1.000000,0.000000,0.000000\n"
          "train,0,step,3,1,1.500000,2.000000,16,0.500000000,0.500000000,0.500000000,0.000000,0.000000,"
          "0.000000,0.250000,0.000000,0.000000,0.000000,0.000000,0.000000,0.000000,0.750000,0.000000\n");
}

TEST(StepsCsvTest, SamplesThatNobodyCountedAreAbsent) {
  record::Recording recording = WithSteps();
  recording.stages[0].ranks[0].samples_known = false;
  EXPECT_THAT(StepsCsv(recording), HasSubstr("window,2,2,1.000000,2.000000,,0.5"));
}

}  // namespace
}  // namespace fullbore::report
