#include "explain/diagnose/logged.h"

#include <gtest/gtest.h>

#include "explain/diagnose/diagnose.h"
#include "record/metrics.h"

namespace fullbore::diagnose {
namespace {

using record::Metric;

constexpr int64_t kSecond = 1'000'000'000;

record::Series Logged(const std::string& name, const std::vector<double>& values, const char* rank = "0") {
  record::Series series{KeyOf(Metric::kLogged, {{"metric", name}, {"rank", rank}}), {}};
  for (size_t i = 0; i < values.size(); ++i)
    series.readings.push_back({static_cast<int64_t>(i + 1) * kSecond, values[i]});
  return series;
}

// The numbers of the steps that the script gave with them.
record::Series Steps(const record::Series& of, int64_t first, int64_t every) {
  record::Series series{KeyOf(Metric::kLoggedStep, of.key.labels), {}};
  for (const record::Reading& reading : of.readings)
    series.readings.push_back(
        {reading.t_ns, static_cast<double>(first + every * std::ssize(series.readings))});
  return series;
}

// A rank that makes ten steps a second.
record::Stage StageWith(std::vector<record::Series> series) {
  record::Stage stage;
  stage.end_ns = 100 * kSecond;
  stage.series = std::move(series);
  record::RankInfo& rank = stage.ranks.emplace_back();
  for (int64_t i = 0; i < 100; ++i) rank.windows.push_back({i * kSecond, (i + 1) * kSecond, 10 * i, 10});
  return stage;
}

Diagnosis RunWith(std::vector<record::Series> series) {
  record::Recording recording;
  recording.stages.push_back(StageWith(std::move(series)));
  return Diagnose(recording);
}

TEST(LoggedTest, StepsAreTheTrainingsWhereTheScriptGivesNone) {
  const auto metrics = LoggedOf(StageWith({Logged("loss", {3, 2, 1})}));
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].points[1].step, 20);
}

TEST(LoggedTest, StepsAreTheScriptsWhereItGivesThem) {
  const record::Series loss = Logged("loss", {3, 2, 1});
  const auto metrics = LoggedOf(StageWith({loss, Steps(loss, 5000, 100)}));
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].points.back().step, 5200);
  EXPECT_EQ(metrics[0].first, 3);
  EXPECT_EQ(metrics[0].last, 1);
}

TEST(LoggedTest, LossesComeFirstAndOfRanksTheLowest) {
  const auto metrics = LoggedOf(
      StageWith({Logged("accuracy", {1}), Logged("val/loss", {2}, "1"), Logged("val/loss", {3}, "0")}));
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[0].name, "val/loss");
  EXPECT_EQ(metrics[0].last, 3);
}

TEST(LoggedTest, TheFactSaysWhatIsMissingAndMayBeAnything) {
  for (const char* fact : {"[]", "{\"loss\": 3}", "{\"loss\": {\"loggers\": [1], \"thinned\": \"x\"}}", "{",
                           "null", "{\"loss\": {\"thinned\": 1e300, \"not_finite\": -3}}"}) {
    record::Stage stage = StageWith({Logged("loss", {1})});
    stage.ranks[0].facts["logged"] = fact;
    const LoggedMetric metric = LoggedOf(stage).at(0);
    EXPECT_TRUE(metric.loggers.empty() && metric.thinned == 0 && metric.not_finite == 0) << fact;
  }
  record::Stage stage = StageWith({Logged("loss", {1})});
  stage.ranks[0].facts["logged"] =
      R"({"loss": {"loggers": ["wandb", "mlflow"], "thinned": 7, "not_finite": 2, "on_device": 1}})";
  const LoggedMetric metric = LoggedOf(stage).at(0);
  EXPECT_EQ(metric.loggers, (std::vector<std::string>{"wandb", "mlflow"}));
  EXPECT_EQ(metric.thinned, 7);
  EXPECT_EQ(metric.not_finite, 2);
  EXPECT_EQ(metric.on_device, 1);
}

TEST(LoggedTest, AMetricOfWhichNoValueCouldBeKeptIsToldAndNotCompared) {
  record::Stage stage = StageWith({});
  stage.ranks[0].facts["logged"] =
      R"({"loss": {"loggers": ["wandb"], "on_device": 5}, "ok": {"loggers": ["wandb"]}})";
  const auto metrics = LoggedOf(stage);
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].on_device, 5);
  record::Recording recording;
  recording.stages.push_back(stage);
  const Diagnosis run = Diagnose(recording);
  EXPECT_TRUE(Together({&run, &run}).empty());
  EXPECT_EQ(MetricsGivenTo("wandb", stage.ranks[0]).size(), 2u);
  EXPECT_TRUE(MetricsGivenTo("mlflow", stage.ranks[0]).empty());
}

TEST(LoggedTest, ManyPointsAreAveragedAndTheLastStays) {
  std::vector<double> values(25'000, 1.0);
  values.back() = 101;
  const LoggedMetric metric = LoggedOf(StageWith({Logged("loss", values)})).at(0);
  EXPECT_LE(metric.points.size(), 1000u);
  EXPECT_EQ(metric.points.back().t_ns, 25'000 * kSecond);
  EXPECT_EQ(metric.values, 25'000);
  EXPECT_EQ(metric.last, 101);
}

TEST(LoggedTest, ALevelIsTheMeanOfTheLastTwentieth) {
  LoggedMetric metric;
  for (int64_t step = 0; step <= 200; ++step) metric.points.push_back({step, step, step % 2 ? 1.0 : 3.0});
  EXPECT_EQ(LevelAt(metric, 200), 2);
  EXPECT_EQ(LevelAt(metric, 1000), 3);  // nothing that near: the last before
  EXPECT_EQ(LevelAt(metric, 0), 3);
  EXPECT_FALSE(LevelAt(metric, -1));
}

TEST(LoggedTest, RunsAreComparedWhereAllOfThemHaveBeen) {
  const record::Series one = Logged("loss", {9, 8, 7, 6}), two = Logged("loss", {9, 5, 4}),
                       lr = Logged("lr", {1});
  const Diagnosis a = RunWith({one, Steps(one, 0, 100), lr}), b = RunWith({two, Steps(two, 0, 100)});
  const auto together = Together({&a, &b});
  ASSERT_EQ(together.size(), 1u);  // `lr` is one's alone
  EXPECT_EQ(together[0].step, 200);
  EXPECT_EQ(together[0].there[0], 7);
  EXPECT_EQ(together[0].there[1], 4);
  EXPECT_EQ(together[0].at_end[0], 6);
  EXPECT_EQ(together[0].WhereText(), "loss at step 200");
}

TEST(LoggedTest, NoResourceAndNoFactIsMadeOfThem) {
  const Diagnosis run = RunWith({Logged("loss", {1, 2})});
  EXPECT_TRUE(run.resources.empty());
  EXPECT_EQ(run.logged.size(), 1u);
}

}  // namespace
}  // namespace fullbore::diagnose
