#include "measure/collect/loader_meter.h"

#include <gtest/gtest.h>

#include <set>

#include "base/testing/scratch_directory.h"
#include "record/run_reader.h"

namespace fullbore::collect {
namespace {

using nlohmann::json;

constexpr int64_t kSecond = 1'000'000'000;

// As the hook copies it from the loader: `busy` and `blocked` are seconds of all threads so far.
json Totals(double at_s, double busy, double blocked, double wait, int64_t samples,
            const char* stage = "read") {
  const auto ns = [](double seconds) { return static_cast<int64_t>(seconds * 1e9); };
  return {{"k", "loader_stages"},
          {"t", ns(at_s)},
          {"id", 1},
          {"stages", json::array({{{"name", stage},
                                   {"threads", 3},
                                   {"samples", samples},
                                   {"bytes", samples * 1000},
                                   {"busy_ns", ns(busy)},
                                   {"blocked_ns", ns(blocked)}}})},
          {"ready_batches", 2},
          {"ready_capacity", 4},
          {"consumer_wait_ns", ns(wait)},
          {"consumer_busy_ns", 0}};
}

class LoaderMeterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = record::RunWriter::Open(path_, {"run", "train", {"x"}, "", {}}, 0, 0);
    ASSERT_TRUE(writer.ok());
    writer_.emplace(std::move(*writer));
  }

  // The readings of a series, after everything was written and read back.
  std::vector<record::Reading> Written(const std::string& name, const record::Labels& labels) {
    meter_.Drain(/*rank=*/5, *writer_);
    EXPECT_TRUE(writer_->Close(100 * kSecond, record::StageState::kEnded, 0, false).ok());
    const auto run = record::ReadRun(path_);
    EXPECT_TRUE(run.ok());
    for (const record::Series& series : run->stages.at(0).series) {
      if (series.key.name == name && series.key.labels == labels) return series.readings;
    }
    return {};
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_ / "run.fbr";
  std::optional<record::RunWriter> writer_;
  LoaderMeter meter_;
};

const record::Labels kReading = {{"loader", "1"}, {"rank", "5"}, {"stage", "read"}};
const record::Labels kWhole = {{"loader", "1"}, {"rank", "5"}};

TEST_F(LoaderMeterTest, TheFirstTotalsAreWhereCountingBegins) {
  meter_.OnTotals(Totals(10, 100, 0, 50, 1000));
  EXPECT_TRUE(Written("loader_busy", kReading).empty());
}

TEST_F(LoaderMeterTest, DifferencesBecomeThreadsAtWork) {
  meter_.OnTotals(Totals(10, 100, 20, 50, 1000));
  meter_.OnTotals(Totals(12, 103, 21, 51, 1400));
  const auto busy = Written("loader_busy", kReading);
  ASSERT_EQ(busy.size(), 1u);
  EXPECT_EQ(busy[0].t_ns, 12 * kSecond);
  EXPECT_NEAR(busy[0].value, 1.5, 1e-9);
}

TEST_F(LoaderMeterTest, EverySeriesOfTheTableIsFilled) {
  meter_.OnTotals(Totals(10, 100, 20, 50, 1000));
  meter_.OnTotals(Totals(12, 103, 21, 51, 1400));
  meter_.Drain(5, *writer_);
  ASSERT_TRUE(writer_->Close(100 * kSecond, record::StageState::kEnded, 0, false).ok());
  const auto run = record::ReadRun(path_);
  ASSERT_TRUE(run.ok());
  std::map<std::string, double> values;
  for (const record::Series& series : run->stages.at(0).series)
    values[series.key.name] = series.readings.at(0).value;
  EXPECT_EQ(values.size(), 8u);
  EXPECT_NEAR(values["loader_blocked_core"], 0.5, 1e-9);
  EXPECT_NEAR(values["loader_wait"], 0.5, 1e-9);
  EXPECT_NEAR(values["loader_samples"], 200, 1e-9);
  EXPECT_NEAR(values["loader_read"], 200'000, 4096);
  EXPECT_EQ(values["loader_threads"], 3);
  EXPECT_EQ(values["loader_ready_batches"], 2);
  EXPECT_EQ(values["loader_ready_capacity"], 4);
}

TEST_F(LoaderMeterTest, WhatThreadsWaitForFollowsFromTheStage) {
  const auto of_stage = [&](const char* stage) {
    meter_.OnTotals(Totals(10, 100, 20, 50, 1000, stage));
    meter_.OnTotals(Totals(12, 103, 21, 51, 1400, stage));
    meter_.Drain(5, *writer_);
  };
  of_stage("user");
  meter_ = LoaderMeter();
  of_stage("decode");  // nothing waits there
  meter_ = LoaderMeter();
  of_stage("collate");
  ASSERT_TRUE(writer_->Close(100 * kSecond, record::StageState::kEnded, 0, false).ok());
  std::set<std::string> blocked;
  const auto run = record::ReadRun(path_);
  ASSERT_TRUE(run.ok());
  for (const record::Series& series : run->stages.at(0).series) {
    if (series.key.name.starts_with("loader_blocked")) blocked.insert(record::LabelledName(series.key));
  }
  EXPECT_EQ(blocked, (std::set<std::string>{"loader_blocked_room{loader=1,rank=5}",
                                            "loader_blocked_user{loader=1,rank=5}"}));
}

TEST_F(LoaderMeterTest, AStageThatAppearsLaterDidNothingBefore) {
  json before = Totals(10, 0, 0, 0, 0);
  before["stages"] = json::array();
  meter_.OnTotals(before);
  meter_.OnTotals(Totals(12, 3, 0, 1, 100));
  const auto busy = Written("loader_busy", kReading);
  ASSERT_EQ(busy.size(), 1u);
  EXPECT_NEAR(busy[0].value, 1.5, 1e-9);
}

TEST_F(LoaderMeterTest, TotalsTooCloseTogetherWaitForLaterOnes) {
  meter_.OnTotals(Totals(10, 100, 0, 50, 1000));
  meter_.OnTotals(Totals(10.05, 100.1, 0, 50, 1000));
  meter_.OnTotals(Totals(12, 103, 0, 51, 1400));
  const auto busy = Written("loader_busy", kReading);
  ASSERT_EQ(busy.size(), 1u);
  EXPECT_NEAR(busy[0].value, 1.5, 1e-9);
}

TEST_F(LoaderMeterTest, ARestartedLoaderIsCountedFromItsRestart) {
  meter_.OnTotals(Totals(10, 100, 0, 50, 1000));
  meter_.OnTotals(Totals(12, 1, 0, 0, 10));
  meter_.OnTotals(Totals(14, 3, 0, 1, 100));
  const auto busy = Written("loader_busy", kReading);
  ASSERT_EQ(busy.size(), 1u);
  EXPECT_EQ(busy[0].t_ns, 14 * kSecond);
  EXPECT_NEAR(busy[0].value, 1, 1e-9);
}

TEST_F(LoaderMeterTest, LinesWithOddContentsAreLeftOut) {
  meter_.OnTotals(Totals(10, 100, 0, 50, 1000));
  for (const char* line :
       {R"({})", R"({"id": 1})", R"({"id": "x", "t": 1, "consumer_wait_ns": 0, "stages": []})",
        R"({"id": 1, "t": 1e300, "consumer_wait_ns": 0, "stages": []})",
        R"({"id": 1, "t": 20000000000, "consumer_wait_ns": -1, "stages": []})",
        R"({"id": 1, "t": 20000000000, "consumer_wait_ns": 18446744073709551615, "stages": []})",
        R"({"id": 1, "t": 9, "consumer_wait_ns": 0, "stages": [5, {"name": 7}]})"}) {
    meter_.OnTotals(json::parse(line));
  }
  meter_.OnTotals(Totals(12, 103, 0, 51, 1400));
  EXPECT_EQ(Written("loader_busy", kReading).size(), 1u);
}

TEST_F(LoaderMeterTest, ReadingsThatNobodyAsksForAreDroppedEventually) {
  constexpr int kLines = 5'000;
  for (int i = 0; i < kLines; ++i) meter_.OnTotals(Totals(i, i, 0, 0, i));
  const auto waits = Written("loader_wait", kWhole);
  EXPECT_LT(waits.size(), 2'000u);
  ASSERT_FALSE(waits.empty());
  EXPECT_EQ(waits.back().t_ns, (kLines - 1) * kSecond);
}

}  // namespace
}  // namespace fullbore::collect
