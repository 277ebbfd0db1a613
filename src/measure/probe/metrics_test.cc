#include "measure/probe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/fd.h"
#include "base/testing/source_directory.h"
#include "base/text.h"

namespace fullbore::probe {
namespace {

// A row of the table in docs/metrics.md: | `name` | unit | labels | source | rate | resolution |
std::set<std::string> DocumentedRows() {
  const Result<std::string> text = ReadFile(fullbore::testing::SourceDirectory() + "/docs/metrics.md");
  std::set<std::string> rows;
  for (const std::string_view line : Split(text.value(), '\n')) {
    const std::vector<std::string_view> cells = Split(line, '|');
    if (cells.size() != 8 || !Trim(cells[1]).starts_with('`')) continue;
    const std::string_view quoted = Trim(cells[1]);
    rows.insert(std::string(quoted.substr(1, quoted.size() - 2)) + "|" + std::string(Trim(cells[2])) + "|" +
                std::string(Trim(cells[3])) + "|" + std::string(Trim(cells[5])));
  }
  return rows;
}

TEST(MetricsTest, TheDocumentAndTheTableSayTheSame) {
  std::set<std::string> rows;
  for (const Metric& metric : AllMetrics()) {
    rows.insert(std::string(metric.name) + "|" + std::string(metric.unit) + "|" + std::string(metric.labels) +
                "|" + (metric.rate == Rate::kFast ? "5/s" : "1/s"));
  }
  EXPECT_EQ(DocumentedRows(), rows);
}

TEST(MetricsTest, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Metric& metric : AllMetrics()) EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
}

TEST(MetricsTest, AKeyCarriesItsUnitAndResolution) {
  const record::SeriesKey key = KeyOf("disk_read", {{"device", "sda"}});
  EXPECT_EQ(key.name, "disk_read");
  EXPECT_EQ(key.unit, "bytes/s");
  EXPECT_EQ(key.resolution, 4096);
  EXPECT_EQ(key.labels.at("device"), "sda");
}

TEST(MetricsDeathTest, AnUnknownNameIsABug) { EXPECT_DEATH(KeyOf("no_such_metric"), "a bug in fullbore"); }

}  // namespace
}  // namespace fullbore::probe
