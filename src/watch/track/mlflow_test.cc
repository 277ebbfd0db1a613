#include "watch/track/mlflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "record/metrics.h"

namespace fullbore::watch {
namespace {

using record::KeyOf;
using record::Metric;
using ::testing::DoubleEq;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::map<std::string, double> Sent(const Sample& sample) {
  std::map<std::string, double> sent;
  for (const auto& metric : MlflowMetrics(sample)) sent[metric["key"]] = metric["value"];
  return sent;
}

TEST(MlflowMetricsTest, AreNamedAsMlflowNamesItsOwn) {
  Sample sample;
  sample.values = {{KeyOf(Metric::kCpuUtilization), 0.25},
                   {KeyOf(Metric::kMemoryUsed), 4e9},
                   {KeyOf(Metric::kMemoryTotal), 16e9},
                   {KeyOf(Metric::kGpuUtilization, {{"gpu", "1"}}), 0.5},
                   {KeyOf(Metric::kGpuMemoryUsed, {{"gpu", "1"}}), 2e9},
                   {KeyOf(Metric::kGpuMemoryTotal, {{"gpu", "0"}}), 8e9}};
  EXPECT_THAT(Sent(sample), UnorderedElementsAre(Pair("system/cpu_utilization_percentage", DoubleEq(25)),
                                                 Pair("system/system_memory_usage_megabytes", DoubleEq(4000)),
                                                 Pair("system/system_memory_usage_percentage", DoubleEq(25)),
                                                 Pair("system/memory_total", DoubleEq(16e9)),
                                                 Pair("system/gpu_1_utilization_percentage", DoubleEq(50)),
                                                 Pair("system/gpu_1_memory_usage_megabytes", DoubleEq(2000)),
                                                 Pair("system/gpu_memory_total/gpu_0", DoubleEq(8e9))));
}

TEST(MlflowMetricsTest, StandAtTheTrainingsStep) {
  Sample sample;
  sample.wall_ns = 1'795'252'502'123'456'789;
  sample.step = 42;
  sample.values = {{{kStepTime, "s", {}}, 0.5}};
  const auto metrics = MlflowMetrics(sample);
  ASSERT_EQ(metrics.size(), 1);
  EXPECT_EQ(metrics[0]["step"], 42);
  EXPECT_EQ(metrics[0]["timestamp"], 1'795'252'502'123);
}

TEST(MlflowTest, SpeaksToAServerThatARunFileNamesOnlyWhileTheRunGoesOn) {
  TrackedRun run;
  run.facts["mlflow_run"] = R"({"uri": "http://127.0.0.1:1", "id": "abc"})";  // nobody listens there
  EXPECT_EQ(Mlflow("").Begin(run).end, Attempt::End::kRefused);
  EXPECT_EQ(Mlflow("http://127.0.0.1:1").Begin(run).end, Attempt::End::kFailed);
  run.is_live = true;
  EXPECT_EQ(Mlflow("").Begin(run).end, Attempt::End::kFailed);
}

}  // namespace
}  // namespace fullbore::watch
