#include "measure/collect/logged_meter.h"

#include <gtest/gtest.h>

#include <set>

#include "base/testing/scratch_directory.h"
#include "record/metrics.h"
#include "record/run_reader.h"

namespace fullbore::collect {
namespace {

using nlohmann::json;

class LoggedMeterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = record::RunWriter::Open(path_, {"run", "train", {"x"}, "", {}}, 0, 0);
    ASSERT_TRUE(writer.ok());
    writer_.emplace(std::move(*writer));
  }

  void Tell(json points) {
    meter_.OnPoints({{"k", "logged"}, {"t", 1'000'000}, {"points", std::move(points)}});
  }

  // All series, after everything was written and read back.
  std::vector<record::Series> Written() {
    meter_.Drain(/*rank=*/3, *writer_);
    EXPECT_TRUE(writer_->Close(2'000'000, record::StageState::kEnded, 0, false).ok());
    const auto run = record::ReadRun(path_);
    EXPECT_TRUE(run.ok());
    return run->stages.at(0).series;
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_ / "run.fbr";
  std::optional<record::RunWriter> writer_;
  LoggedMeter meter_;
};

TEST_F(LoggedMeterTest, KeepsValuesAndTheScriptsOwnSteps) {
  Tell(json::array({json::array({"loss", 100, 2.5, 10}), json::array({"lr", 101, 1e-4, nullptr}),
                    json::array({"loss", 200, 2, 20})}));
  std::set<std::string> seen;
  for (const record::Series& series : Written()) {
    seen.insert(record::LabelledName(series.key));
    if (series.key.labels.at("metric") == "lr") continue;
    ASSERT_EQ(series.readings.size(), 2u);
    EXPECT_EQ(series.readings[1].t_ns, 200);
    EXPECT_EQ(series.readings[1].value, series.key.name == "logged" ? 2 : 20);
  }
  const std::set<std::string> expected = {"logged{metric=loss,rank=3}", "logged{metric=lr,rank=3}",
                                          "logged_step{metric=loss,rank=3}"};
  EXPECT_EQ(seen, expected);
}

TEST_F(LoggedMeterTest, LeavesOutWhatIsNoPoint) {
  Tell("not points");
  Tell(json::array({1, json::array(), json::array({"x", 1}), json::array({5, 1, 1}),
                    json::array({"x", "1", 1}), json::array({"x", 1, "nan"}), json::array({"", 1, 1}),
                    json::array({"x", -1, 1}), json::array({"late", 1'000'001, 1}),
                    json::array({std::string(1000, 'x'), 1, 1})}));
  meter_.OnPoints({{"k", "logged"}});
  EXPECT_TRUE(Written().empty());
}

TEST_F(LoggedMeterTest, KeepsTheFirstMetricsOfManyAndNoTimeTwice) {
  for (int i = 0; i < 200; ++i) Tell(json::array({json::array({"m" + std::to_string(i), 1 + i, i})}));
  Tell(json::array({json::array({"m0", 1, 7.0}), json::array({"m0", 1, 8.0})}));
  const std::vector<record::Series> series = Written();
  ASSERT_EQ(series.size(), LoggedMeter::kMostMetrics);
  for (const record::Series& each : series) EXPECT_EQ(each.readings.size(), 1u);
}

TEST_F(LoggedMeterTest, DropsWhatNobodyTakes) {
  for (int64_t i = 0; i < 100'100; ++i) meter_.OnPoints({{"t", 1'000'000}, {"points", {{"a", i + 1, 1.5}}}});
  for (const record::Series& series : Written()) EXPECT_LT(series.readings.size(), 100u);
}

}  // namespace
}  // namespace fullbore::collect
