#include "watch/track/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "watch/track/testing/trained_run.h"

namespace fullbore::watch {
namespace {

using ::testing::DoubleEq;
using testing::kBeginNs;
using ::testing::Pair;
using ::testing::SizeIs;
using testing::TrainedRun;
using ::testing::UnorderedElementsAre;

std::map<std::string, double> ByName(const Sample& sample) {
  std::map<std::string, double> values;
  for (const Value& value : sample.values) values[NameOf(value.key)] = value.value;
  return values;
}

TEST(SampleTest, SumsUpEveryTwoSecondsAtFirst) {
  const auto samples = SamplesOf(TrainedRun(10, true), 0);
  ASSERT_THAT(samples, SizeIs(5));
  EXPECT_EQ(samples[0].end_ns, kBeginNs + 2 * kNsPerSecond);
  EXPECT_EQ(samples[0].wall_ns, samples[0].end_ns + 500 * kNsPerSecond);
  EXPECT_EQ(samples[0].step, 4);
  EXPECT_THAT(ByName(samples[0]), UnorderedElementsAre(Pair("fullbore/step_s", DoubleEq(0.5)),
                                                       Pair("fullbore/samples_per_s", DoubleEq(16)),
                                                       Pair("fullbore/data_wait", DoubleEq(0.5)),
                                                       Pair("fullbore/forward", DoubleEq(0.5)),
                                                       Pair("system/gpu_power/gpu_0", DoubleEq(0.5))));
}

TEST(SampleTest, SumsUpEveryTenSecondsOfALongRun) {
  EXPECT_THAT(SamplesOf(TrainedRun(220, true), 0), SizeIs(60 + 10));
}

TEST(SampleTest, LeavesOutWhatMayStillBeWritten) {
  const auto samples = SamplesOf(TrainedRun(10, false), 0);
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_EQ(samples.back().end_ns, kBeginNs + 4 * kNsPerSecond);
}

TEST(SampleTest, EndsWithTheRun) {
  const auto samples = SamplesOf(TrainedRun(5, true), 0);
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_EQ(samples.back().end_ns, kBeginNs + 5 * kNsPerSecond);
  EXPECT_EQ(samples.back().step, 10);
}

TEST(SampleTest, OneThatGoesOnGivesTheSameAsOneThatIsOver) {
  const auto live = SamplesOf(TrainedRun(60, false), 0), over = SamplesOf(TrainedRun(60, true), 0);
  ASSERT_LT(live.size(), over.size());
  for (size_t i = 0; i < live.size(); ++i) {
    EXPECT_EQ(live[i].end_ns, over[i].end_ns);
    EXPECT_EQ(ByName(live[i]), ByName(over[i]));
  }
}

TEST(SampleTest, GoesOnAfterWhatWasSent) {
  const auto samples = SamplesOf(TrainedRun(10, true), kBeginNs + 6 * kNsPerSecond);
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_EQ(samples.front().end_ns, kBeginNs + 8 * kNsPerSecond);
}

TEST(SampleTest, LeavesOutWhatIsNoNumberAndSeriesThatNobodyKnows) {
  record::Recording recording = TrainedRun(2, true);
  record::Stage& stage = recording.stages.back();
  for (record::Reading& reading : stage.series[0].readings) reading.value = NAN;
  record::Series& hostile = stage.series.emplace_back();
  hostile.key.name = "a\nb";
  hostile.readings = {{kBeginNs + kNsPerSecond, 1}};
  const auto samples = SamplesOf(recording, 0);
  ASSERT_THAT(samples, SizeIs(1));
  for (const Value& value : samples[0].values) EXPECT_TRUE(IsOfTraining(value.key)) << value.key.name;
}

TEST(SampleTest, WhatTheScriptLogsHasANameOfItsOwnAndItsStepsAreNoFigure) {
  EXPECT_EQ(NameOf(record::KeyOf(record::Metric::kLogged, {{"metric", "train/loss ../x"}, {"rank", "0"}})),
            "logged/train_loss_.._x");
  EXPECT_EQ(NameOf(record::KeyOf(record::Metric::kLogged, {{"metric", "loss"}, {"rank", "2"}})),
            "logged/loss/rank_2");
  EXPECT_EQ(NameOf({"logged", "", {}}), "logged//rank_");
  record::Recording recording = TrainedRun(2, true);
  record::Series& steps = recording.stages.back().series.emplace_back();
  steps.key = record::KeyOf(record::Metric::kLoggedStep, {{"metric", "loss"}, {"rank", "0"}});
  steps.readings = {{kBeginNs + kNsPerSecond, 1}};
  const std::vector<Sample> samples = SamplesOf(recording, 0);
  for (const Value& value : samples.at(0).values) EXPECT_NE(value.key.name, steps.key.name);
}

TEST(SampleTest, NamesHoldNothingThatATrackerRefuses) {
  EXPECT_EQ(NameOf(record::KeyOf(record::Metric::kDiskSpaceUsed, {{"mount", "/a b$"}})),
            "system/disk_space_used/mount__a_b_");
}

}  // namespace
}  // namespace fullbore::watch
