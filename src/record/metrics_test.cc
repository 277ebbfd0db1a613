#include "record/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/fd.h"
#include "base/testing/source_directory.h"
#include "base/text.h"

namespace fullbore::record {
namespace {

std::string ResolutionForPeople(double resolution) {
  if (resolution == 0) return "exact";
  if (resolution == 1 << 20) return "1 MiB";
  if (resolution == 1e6) return "1e6";
  std::ostringstream text;
  text << resolution;
  return text.str();
}

// A row of the table in docs/metrics.md: | `name` | unit | labels | source | rate | resolution |
std::vector<std::string> DocumentedRows() {
  const Result<std::string> text = ReadFile(fullbore::testing::SourceDirectory() + "/docs/metrics.md");
  std::vector<std::string> rows;
  for (const std::string_view line : Split(text.value(), '\n')) {
    if (line.starts_with("| `")) rows.emplace_back(Trim(line));
  }
  return rows;
}

TEST(MetricsTest, TheDocumentAndTheTableAgree) {
  std::vector<std::string> rows;
  for (const MetricInfo& info : AllMetrics()) {
    std::string row;
    for (const std::string& cell :
         {"`" + std::string(info.name) + "`", std::string(info.unit), std::string(info.labels),
          std::string(info.meaning), std::string(info.rate == Rate::kFast ? "5/s" : "1/s"),
          ResolutionForPeople(info.resolution)})
      row += "| " + cell + " ";
    rows.push_back(row + "|");
  }
  EXPECT_THAT(DocumentedRows(), ::testing::ElementsAreArray(rows));
}

TEST(MetricsTest, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const MetricInfo& info : AllMetrics()) EXPECT_TRUE(names.insert(info.name).second) << info.name;
}

TEST(MetricsTest, EveryMetricIsFoundInItsRow) {
  for (const MetricInfo& info : AllMetrics()) EXPECT_EQ(&InfoOf(info.metric), &info) << info.name;
}

TEST(MetricsTest, AKeyCarriesItsUnitAndResolution) {
  const SeriesKey key = KeyOf(Metric::kDiskRead, {{"device", "sda"}});
  EXPECT_EQ(key.name, "disk_read");
  EXPECT_EQ(key.unit, "bytes/s");
  EXPECT_EQ(key.resolution, 4096);
  EXPECT_EQ(key.labels.at("device"), "sda");
  EXPECT_TRUE(IsOf(key, Metric::kDiskRead));
}

}  // namespace
}  // namespace fullbore::record
