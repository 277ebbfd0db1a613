// What the browser makes of the page is tested in tests/report.
#include "report/html.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "report/page_data.h"
#include "report/testing/samples.h"

namespace fullbore::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

size_t CountOf(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(HtmlTest, EveryPlaceholderOfThePageIsFilledIn) {
  const testing::Sample sample = testing::Healthy();
  const std::string page = ToHtml(sample.diagnosis, sample.recording);
  for (const char* mark : {"@TITLE@", "@CSS@", "@TEXT@", "@DATA@", "@JS@"})
    EXPECT_THAT(page, Not(HasSubstr(mark)));
  EXPECT_THAT(page, HasSubstr("<title>2026-11-21-1102-train: healthy</title>"));
}

TEST(HtmlTest, NoTextEndsTheScriptAroundIt) {
  const testing::Sample harmless = testing::InputBound();
  const testing::Sample hostile = testing::HostileTexts();
  const std::string page = ToHtml(hostile.diagnosis, hostile.recording);
  EXPECT_EQ(CountOf(page, "</script"), CountOf(ToHtml(harmless.diagnosis, harmless.recording), "</script"));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
}

TEST(HtmlTest, NoTextReversesTheReadingDirection) {
  const testing::Sample hostile = testing::HostileTexts();
  const std::string page = ToHtml(hostile.diagnosis, hostile.recording);
  for (const std::string_view line : Split(page, '\n')) EXPECT_EQ(Printable(line, true), line);
  EXPECT_THAT(page, HasSubstr(R"(\u202e)"));
}

TEST(HtmlTest, PlaceholdersInsideTextsAreLeftAlone) {
  testing::Sample sample = testing::Healthy();
  sample.diagnosis.run_id = "@DATA@@JS@";
  EXPECT_THAT(ToHtml(sample.diagnosis, sample.recording), HasSubstr("<title>@DATA@@JS@: healthy</title>"));
}

TEST(PageDataTest, TheChartsShowTheJudgedStage) {
  const testing::Sample sample = testing::TwoStages();
  const Json data = PageData(sample.diagnosis, sample.recording);
  EXPECT_EQ(data["stage"], "train");
  EXPECT_EQ(data["ranks"].size(), 1u);
  EXPECT_EQ(data["stages"].size(), 2u);
}

TEST(PageDataTest, AMessageAboutAWholeTraceHasNoTime) {
  const testing::Sample trace = testing::OneStepTrace(), run = testing::InputBound();
  EXPECT_FALSE(PageData(trace.diagnosis, trace.recording)["messages"][0].contains("t_ms"));
  EXPECT_EQ(PageData(run.diagnosis, run.recording)["messages"][0]["t_ms"], 9000);
}

TEST(PageDataTest, AShortTraceIsPlacedToTheMicrosecond) {
  testing::Sample trace = testing::OneStepTrace();
  trace.recording.stages[0].end_ns = trace.recording.stages[0].begin_ns + 12'345;
  EXPECT_EQ(PageData(trace.diagnosis, trace.recording)["end_ms"], 0.012);
}

TEST(PageDataTest, SharesOfEveryWindowSumToOne) {
  const testing::Sample sample = testing::InputBound();
  const Json windows = PageData(sample.diagnosis, sample.recording)["ranks"][0]["windows"];
  ASSERT_GT(windows["t"].size(), 100u);
  for (size_t i = 0; i < windows["t"].size(); ++i) {
    double sum = 0;
    for (const auto& share : windows["shares"]) sum += share[i].get<double>();
    EXPECT_NEAR(sum, 1, 1e-3);
  }
}

TEST(PageDataTest, AWeekOfReadingsStaysSmall) {
  testing::Sample sample = testing::Healthy();
  record::Stage& stage = sample.recording.stages[0];
  record::Series& series = stage.series[0];
  for (int64_t i = 0; i < 7 * 24 * 3600; ++i) {
    series.readings.push_back({stage.end_ns + i * 1'000'000'000, 0.5 + 0.001 * static_cast<double>(i % 100)});
  }
  EXPECT_LT(PageData(sample.diagnosis, sample.recording)["series"][0]["t"].size(), 1000u);
}

TEST(PageDataTest, ARecordingWithoutStagesIsNoProblem) {
  const Json data = PageData(testing::NoTraining().diagnosis, record::Recording{});
  EXPECT_TRUE(data["series"].empty());
  EXPECT_TRUE(data["ranks"].empty());
}

}  // namespace
}  // namespace fullbore::report
