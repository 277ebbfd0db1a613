#include "loader/bench/flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loader/bench/flow_json.h"

namespace fullbore::loader::bench {
namespace {

using ::testing::HasSubstr;

Flow TwoCores() {
  Flow flow;
  flow.path = "photos";
  flow.cores = 4;
  flow.samples = 2000;
  flow.points = {{1, 1000, {{"read", 20}, {"decode", 800}, {"transform", 150}, {"collate", 5}}},
                 {2, 1900, {{"read", 20}, {"decode", 840}, {"transform", 160}, {"collate", 5}}}};
  return flow;
}

TEST(FlowTest, RatesBetweenMeasuredNumbersLieOnALine) {
  Flow flow = TwoCores();
  flow.points.push_back({4, 2900, {}});
  EXPECT_DOUBLE_EQ(RateAt(flow, 1), 1000);
  EXPECT_DOUBLE_EQ(RateAt(flow, 3), 2400);
  EXPECT_DOUBLE_EQ(RateAt(flow, 4), 2900);
  EXPECT_DOUBLE_EQ(RateAt(flow, 0), 0);
}

TEST(FlowTest, BeyondTheMeasuredNumbersTheLastSlopeGoesOnUntilTheCoresEnd) {
  const Flow flow = TwoCores();
  EXPECT_DOUBLE_EQ(RateAt(flow, 3), 2800);
  EXPECT_DOUBLE_EQ(RateAt(flow, 4), 3700);
  EXPECT_DOUBLE_EQ(RateAt(flow, 64), 3700);
}

TEST(FlowTest, ASlopeIsNeverSteeperThanTheAverageAndNeverNegative) {
  Flow flow = TwoCores();
  flow.points[1].samples_per_s = 3000;  // noise: more than twice as fast with two
  EXPECT_DOUBLE_EQ(RateAt(flow, 3), 4500);
  flow.points[1].samples_per_s = 900;
  EXPECT_DOUBLE_EQ(RateAt(flow, 4), 900);
}

TEST(FlowTest, AWantedRateTakesTheFewestThreadsThatReachIt) {
  const Flow flow = TwoCores();
  EXPECT_EQ(ThreadsFor(flow, 900).threads, 1);
  EXPECT_EQ(ThreadsFor(flow, 1001).threads, 2);
  const Demand beyond_measured = ThreadsFor(flow, 2500);
  EXPECT_EQ(beyond_measured.threads, 3);
  EXPECT_THAT(beyond_measured.text, HasSubstr("extrapolated"));
}

TEST(FlowTest, MoreThanTheCoresGiveIsSaidWithTheCoresItWouldTake) {
  const Demand demand = ThreadsFor(TwoCores(), 10'000);
  EXPECT_EQ(demand.threads, std::nullopt);
  EXPECT_DOUBLE_EQ(demand.at_most, 3700);
  EXPECT_EQ(demand.machines_cores, 11);  // 4 + (10,000 - 3,700) / 900
  EXPECT_THAT(demand.text, HasSubstr("more than the 4 cores here can give: at most 3,700"));
}

TEST(FlowTest, ADemandNamesColdStorageThatCannotFollow) {
  Flow flow = TwoCores();
  flow.readings = {{1, true, 300, 3e7}, {16, true, 800, 8e7}};
  EXPECT_THAT(ThreadsFor(flow, 900).text, HasSubstr("storage gives 800"));
  EXPECT_THAT(ThreadsFor(flow, 700).text, ::testing::Not(HasSubstr("storage")));
}

TEST(FlowTest, WhatToDoAboutSlowReadsDependsOnWhereTheDataIs) {
  Flow flow = TwoCores();
  for (Point& point : flow.points) point.stages = {{"read", 900}, {"decode", 100}};
  EXPECT_THAT(Judge(flow)->next_step, HasSubstr("pack the small files into shards"));
  flow.remote = true;
  EXPECT_THAT(Judge(flow)->next_step, HasSubstr("cache on a local disk"));
}

TEST(FlowTest, TheStageThatCostsAThreadMostBinds) {
  const auto verdict = Judge(TwoCores());
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->pipe, Pipe::kDecode);
  EXPECT_THAT(verdict->text, HasSubstr("840 of the 1025 us"));
  EXPECT_THAT(verdict->text, HasSubstr("82 %"));

  Flow packed = TwoCores();
  for (Point& point : packed.points) point.stages = {{"read", 3}, {"collate", 30}};
  EXPECT_EQ(Judge(packed)->pipe, Pipe::kCollate);
}

TEST(FlowTest, StorageBindsWhenTheBestColdReadingIsSlowerThanDecoding) {
  Flow flow = TwoCores();
  flow.readings = {{1, true, 300, 3e7}, {16, true, 1200, 1.2e8}, {2, false, 40'000, 4e9}};
  EXPECT_EQ(Judge(flow)->pipe, Pipe::kStorage);
  EXPECT_THAT(Judge(flow)->text, HasSubstr("1,200 samples/s (120 MB/s) with 16 readers"));
  flow.readings[1].samples_per_s = 5000;
  EXPECT_EQ(Judge(flow)->pipe, Pipe::kDecode);
}

TEST(FlowTest, NothingMeasuredIsNothingJudged) {
  EXPECT_FALSE(Judge(Flow()));
  EXPECT_FALSE(ThreadsFor(Flow(), 100).threads);
  EXPECT_EQ(RateAt(Flow(), 2), 0);
}

TEST(FlowTest, JsonHasWhatWasMeasuredAndLeavesOutWhatWasNot) {
  Flow flow = TwoCores();
  const auto plain = ToJson(flow, 0);
  EXPECT_EQ(plain["schema"], "fullbore.loader_bench/1");
  EXPECT_EQ(plain["points"][1]["us_per_sample"]["decode"], 840);
  EXPECT_EQ(plain["verdict"]["binds"], "decode");
  EXPECT_FALSE(plain.contains("torch"));
  EXPECT_FALSE(plain.contains("demand"));
  flow.torch = {{0, 300}, {2, 600}};
  const auto full = ToJson(flow, 10'000);
  EXPECT_EQ(full["torch"]["points"][1]["workers"], 2);
  EXPECT_EQ(full["demand"]["cores_needed"], 11);
  EXPECT_FALSE(full["demand"].contains("threads"));
}

}  // namespace
}  // namespace fullbore::loader::bench
