#include "loader/bench/script_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullbore::loader::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::json Rank(int rank, double samples_per_s) {
  return {{"rank", rank},
          {"samples_per_s", samples_per_s},
          {"batches_per_s", samples_per_s / 32},
          {"worker_cores", 1.9},
          {"main_cores", 0.1},
          {"num_workers", 2},
          {"batch_size", 32},
          {"dataset", "ImageFolder"},
          {"dataset_len", 2000},
          {"where", "train.py:41"}};
}

ScriptFlow Flow(int workers, double worker_cores, double main_cores, int cores) {
  ScriptFlow flow;
  flow.script = "train.py";
  flow.ranks = 1;
  flow.num_workers = workers;
  flow.worker_cores = worker_cores;
  flow.main_cores = main_cores;
  flow.cores = cores;
  flow.samples_per_s = 400;
  return flow;
}

TEST(ScriptFlowTest, TheRanksAreSummedAndTheFirstOneDescribesTheLoader) {
  const auto flow = SumRanks({Rank(0, 400), Rank(1, 380)});
  ASSERT_TRUE(flow);
  EXPECT_EQ(flow->ranks, 2);
  EXPECT_DOUBLE_EQ(flow->samples_per_s, 780);
  EXPECT_DOUBLE_EQ(flow->worker_cores, 3.8);
  EXPECT_EQ(flow->where, "train.py:41");
  EXPECT_EQ(flow->dataset_samples, 2000);
}

TEST(ScriptFlowTest, WhatTheHookDoesNotKnowIsAbsent) {
  nlohmann::json stream = Rank(0, 400);
  stream["dataset_len"] = nullptr;
  stream["where"] = nullptr;
  stream["fast"] = {{"reason", "a dataset of another kind"}};
  const auto flow = SumRanks({stream});
  ASSERT_TRUE(flow);
  EXPECT_EQ(flow->dataset_samples, std::nullopt);
  EXPECT_EQ(flow->where, "");
  EXPECT_EQ(flow->fast_samples_per_s, std::nullopt);
  EXPECT_THAT(ToTerminal(*flow, 0, {}),
              HasSubstr("fullbore.data was not measured: a dataset of another kind"));
}

TEST(ScriptFlowTest, AnErrorOfOneRankAndNoRankAtAllAreErrors) {
  EXPECT_EQ(SumRanks({}).error().code, ErrorCode::kNotFound);
  const auto failed = SumRanks({Rank(0, 400), {{"rank", 1}, {"error", "the loader raised ValueError: x"}}});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().text, HasSubstr("the loader raised ValueError: x"));
}

TEST(ScriptFlowTest, WhoUsesTheCoresSaysWhatBinds) {
  EXPECT_EQ(Judge(Flow(0, 0, 1.0, 8)).binds, "training process");
  EXPECT_THAT(Judge(Flow(0, 0, 1.0, 8)).next_step, HasSubstr("num_workers=8"));
  ScriptFlow slow = Flow(0, 0, 1.0, 8);
  slow.fast_samples_per_s = 3 * slow.samples_per_s;
  EXPECT_THAT(Judge(slow).next_step, HasSubstr("from_torch(loader) was 3.0 times as fast"));
  slow.fast_samples_per_s = slow.samples_per_s;
  EXPECT_THAT(Judge(slow).next_step, Not(HasSubstr("from_torch")));
  EXPECT_EQ(Judge(Flow(2, 1.9, 0.1, 2)).binds, "cores");
  EXPECT_EQ(Judge(Flow(2, 1.95, 0.1, 8)).binds, "workers");
  EXPECT_EQ(Judge(Flow(4, 1.0, 0.97, 8)).binds, "training process");
  EXPECT_EQ(Judge(Flow(4, 0.5, 0.1, 8)).binds, "storage");
  ScriptFlow crowded = Flow(4, 0.5, 0.1, 8);
  crowded.worker_waits = 3;
  EXPECT_EQ(Judge(crowded).binds, "cores");
  EXPECT_THAT(Judge(crowded).text, HasSubstr("other programs"));
}

TEST(ScriptFlowTest, TheFasterLoaderStandsBesideTheScripts) {
  ScriptFlow flow = Flow(2, 1.9, 0.1, 2);
  flow.fast_samples_per_s = 1400;
  const std::string text = ToTerminal(flow, 1000, {});
  EXPECT_THAT(text, HasSubstr("the same as fullbore.data"));
  EXPECT_THAT(text, HasSubstr("1,000 samples/s are more than this loader alone gives"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(ToJson(flow, 0)["fast"]["samples_per_s"], 1400);
}

}  // namespace
}  // namespace fullbore::loader::bench
