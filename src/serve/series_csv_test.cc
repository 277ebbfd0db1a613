#include "serve/series_csv.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/clock.h"
#include "record/metrics.h"

namespace fullbore::serve {
namespace {

using ::testing::HasSubstr;

constexpr char kColumns[] = "stage,series,unit,t_s,value\n";

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
  EXPECT_TRUE(csv.starts_with(kColumns));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 2 * 100);
  EXPECT_THAT(csv, HasSubstr("\ntrain,cpu_core_utilization{cpu=1},ratio,99.000,0.4\n"));
}

TEST(SeriesCsvTest, ALongRunStaysBelowTheLimitAndKeepsItsSpikes) {
  constexpr size_t kMaxBytes = 100'000;
  const std::string csv = SeriesCsv(WithReadings(100'000, 77'777), kMaxBytes);
  EXPECT_LE(csv.size(), kMaxBytes + sizeof kColumns);
  EXPECT_GT(csv.size(), kMaxBytes / 3) << "and uses what it may";
  EXPECT_THAT(csv, HasSubstr("train,cpu_core_utilization{cpu=0},ratio,77777.000,0.99\n"));
  EXPECT_THAT(csv, HasSubstr("train,cpu_core_utilization{cpu=1},ratio,77777.000,0.99\n"));
}

TEST(SeriesCsvTest, AnEndlessNameDoesNotMakeItEndless) {
  record::Recording recording = WithReadings(1000, 7);
  recording.stages[0].name = std::string(1 << 20, 'x');
  EXPECT_EQ(SeriesCsv(recording, 1 << 20), kColumns);
}

TEST(SeriesCsvTest, ANameIsOneCellAndNoFormula) {
  record::Recording recording = WithReadings(1, 0);
  recording.stages[0].name = "=1+1,\"x\"";
  EXPECT_THAT(SeriesCsv(recording), HasSubstr("\n\"'=1+1,\"\"x\"\"\",cpu_core_utilization{cpu=0},"));
}

TEST(SeriesCsvTest, WithoutSeriesItHasItsColumns) { EXPECT_EQ(SeriesCsv({}), kColumns); }

}  // namespace
}  // namespace fullbore::serve
