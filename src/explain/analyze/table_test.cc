#include "explain/analyze/table.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "explain/analyze/distribution.h"

namespace fullbore::analyze {
namespace {

using ::testing::HasSubstr;

Table Sample() {
  Table table{{{"name", ""}, {"sum_ns", "ns"}, {"share_ratio", "ratio"}}, {}, {}};
  table.Add({std::string("void f<a, b>(\"x\")"), int64_t{1'250'000}, 0.5});
  table.Add({std::string("g"), Cell(), 0.25});
  table.Note("said once");
  table.Note("said once");
  return table;
}

TEST(TableTest, CsvQuotesWhatNeedsItAndLeavesTheUnknownEmpty) {
  EXPECT_EQ(ToCsv(Sample()),
            "name,sum_ns,share_ratio\r\n\"void f<a, b>(\"\"x\"\")\",1250000,0.5\r\ng,,0.25\r\n");
}

TEST(TableTest, JsonHasUnitsAndNulls) {
  const auto json = ToJson(Sample());
  EXPECT_EQ(json["columns"][1]["unit"], "ns");
  EXPECT_EQ(json["rows"][0][1], 1'250'000);
  EXPECT_TRUE(json["rows"][1][1].is_null());
  EXPECT_EQ(json["notes"].size(), 1U);
}

TEST(TableTest, TextHasUnitsInTheCells) {
  const std::string text = ToText(Sample(), 10, 100, true);
  EXPECT_THAT(text, HasSubstr("1.25 ms"));
  EXPECT_THAT(text, HasSubstr("50.00 %"));
  EXPECT_THAT(text, HasSubstr("note: said once"));
}

TEST(TableTest, TextSaysHowManyRowsItLeavesOut) {
  EXPECT_THAT(ToText(Sample(), 1, 100, true), HasSubstr("and 1 more rows"));
}

TEST(TableTest, LongNamesAreCutToTheWidth) {
  Table table{{{"name", ""}, {"count", "count"}}, {}, {}};
  table.Add({std::string(300, 'x'), int64_t{3}});
  const std::string text = ToText(table, 10, 60, true);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 60U);
    begin = end + 1;
  }
  EXPECT_THAT(text, HasSubstr("xx…"));
}

TEST(TableTest, ControlCharactersDoNotReachTheTerminal) {
  Table table{{{"name", ""}}, {}, {}};
  table.Add({std::string("a\x1b[2J\u009b\u202e\nb")});
  table.Note("of \x1b");
  const std::string text = ToText(table, 10, 60, true);
  EXPECT_THAT(text, HasSubstr(R"(a\x1b[2J\u009b\u202e b)"));
  EXPECT_THAT(text, HasSubstr(R"(of \x1b)"));
  EXPECT_EQ(ToCsv(table), "name\r\na\\x1b[2J\\u009b\\u202e b\r\n");
}

TEST(TableTest, WhatIsTooWideForAlignedColumnsIsFoldedBetweenCells) {
  Table table{
      {{"name", ""}, {"count_before", "count"}, {"count_after", "count"}, {"sum_before_ns", "ns"}}, {}, {}};
  table.Add({std::string("volta_sgemm"), int64_t{12}, int64_t{14}, int64_t{2'000'000}});
  EXPECT_EQ(ToText(table, 10, 40, true),
            "  volta_sgemm\n"
            "      count before 12   count after 14\n"
            "      sum before 2.00 ms\n");
  for (int width = 30; width < 120; ++width) {
    const std::string text = ToText(table, 10, width, true);
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      EXPECT_LE(end - at, static_cast<size_t>(width)) << text;
    }
    EXPECT_THAT(text, HasSubstr("2.00 ms"));
  }
}

TEST(DistributionTest, QuantilesAreThoseOfPandas) {
  Distribution values;
  for (const int64_t value : {4, 1, 3, 2}) values.Add(value);
  EXPECT_EQ(values.sum(), 10);
  EXPECT_DOUBLE_EQ(values.Quantile(0.5), 2.5);
  EXPECT_DOUBLE_EQ(values.Quantile(0.25), 1.75);
  EXPECT_NEAR(values.deviation(), 1.2909944, 1e-6);
  EXPECT_EQ(values.max(), 4);
}

}  // namespace
}  // namespace fullbore::analyze
