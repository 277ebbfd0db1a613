#include "base/text.h"

#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/testing/source_directory.h"

namespace fullbore {
namespace {

TEST(TextTest, SplitKeepsEmptyPartsAndWordsDoesNot) {
  EXPECT_EQ(Split("a::b", ':').size(), 3u);
  EXPECT_EQ(Words("  a \t b\n").size(), 2u);
  EXPECT_EQ(Words("   ").size(), 0u);
}

TEST(TextTest, SecondsMayBeGivenInMinutesAndHours) {
  EXPECT_EQ(ParseSeconds("90"), 90);
  EXPECT_EQ(ParseSeconds("1.5m"), 90);
  EXPECT_EQ(ParseSeconds("2h"), 7200);
  EXPECT_EQ(ParseSeconds("5s"), 5);
  EXPECT_EQ(ParseSeconds("80ms"), 0.08);
  EXPECT_EQ(ParseSeconds("m"), std::nullopt);
  EXPECT_EQ(ParseSeconds("ms"), std::nullopt);
  EXPECT_EQ(ParseSeconds(""), std::nullopt);
  EXPECT_EQ(ParseSeconds("5 m"), std::nullopt);
}

TEST(TextTest, ParseIntTakesTheWholeTextOrNothing) {
  EXPECT_EQ(ParseInt("-42"), -42);
  EXPECT_EQ(ParseInt("42x"), std::nullopt);
  EXPECT_EQ(ParseInt(""), std::nullopt);
}

TEST(TextTest, DurationsReadAsPeopleSayThem) {
  EXPECT_EQ(FormatDuration(203'000'000), "203 ms");
  EXPECT_EQ(FormatDuration(1'500), "1.5 us");
  EXPECT_EQ(FormatDuration(252'000'000'000), "4 min 12 s");
  EXPECT_EQ(FormatDuration(7'260'000'000'000), "2 h 1 min");
}

TEST(TextTest, CountsCarryThousandsSeparators) {
  EXPECT_EQ(FormatCount(1840), "1,840");
  EXPECT_EQ(FormatCount(-1234567), "-1,234,567");
  EXPECT_EQ(FormatCount(0.25), "0.25");
}

TEST(TextTest, BytesUseDecimalUnits) {
  EXPECT_EQ(FormatBytes(31e9), "31 GB");
  EXPECT_EQ(FormatBytes(1.5e6), "1.5 MB");
  EXPECT_EQ(FormatBytes(12), "12 B");
}

TEST(TextTest, QuantitiesReadAsOnThePage) {
  const auto table = ReadFile(testing::SourceDirectory() + "/src/base/testing/quantities.tsv");
  ASSERT_TRUE(table) << table.error().text;
  for (const std::string_view line : Split(*table, '\n')) {
    if (line.empty()) continue;
    const auto cells = Split(line, '\t');
    ASSERT_EQ(cells.size(), 3u) << line;
    EXPECT_EQ(FormatQuantity(ParseDouble(cells[0]).value(), cells[1]), cells[2]);
  }
}

TEST(TextTest, ASentenceGoesOnWhereItsFullStopWas) {
  std::string sentence = "It waits.";
  ReplaceFullStop(sentence, " for data.");
  EXPECT_EQ(sentence, "It waits for data.");
  ReplaceFullStop(sentence, "");
  ReplaceFullStop(sentence, ", always");
  EXPECT_EQ(sentence, "It waits for data, always");
}

TEST(TextTest, ShellQuoteLeavesPlainWordsAlone) {
  EXPECT_EQ(ShellQuote("train.py"), "train.py");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuote(""), "''");
}

}  // namespace
}  // namespace fullbore
