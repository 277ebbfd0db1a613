#include "fleet/account.h"

#include <gmock/gmock.h>

#include <numeric>

#include "explain/diagnose/testing/made_run.h"

namespace fullbore::fleet {
namespace {

using diagnose::testing::kMs;
using diagnose::testing::MadeLoader;
using diagnose::testing::MadeRank;
using diagnose::testing::MadeRun;
using diagnose::testing::MadeStep;

int64_t Of(const RunAccount& account, Kind kind, const std::string& cause = "") {
  int64_t ns = 0;
  for (const Part& part : account.parts) ns += part.kind == kind && part.cause == cause ? part.device_ns : 0;
  return ns;
}

int64_t Sum(const RunAccount& account) {
  return std::accumulate(account.parts.begin(), account.parts.end(), int64_t{0},
                         [](int64_t sum, const Part& part) { return sum + part.device_ns; });
}

// 100 steps from t = 1 s, then so many seconds.
record::Recording ARun(const MadeStep& step, int ranks = 1, int64_t seconds_after = 5) {
  std::vector<record::RankInfo> made;
  for (int rank = 0; rank < ranks; ++rank) {
    made.push_back(MadeRank(rank, 100, [&](int64_t) { return step; }));
    made.back().device = "cpu";
    made.back().loaders.push_back(MadeLoader(0, 100, step.data_ms, step.data_ms));
  }
  record::Recording run = MadeRun(std::move(made));
  run.stages[0].end_ns = run.stages[0].ranks[0].steps.back().end_ns + seconds_after * 1000 * kMs;
  run.stages[0].state = record::StageState::kEnded;
  run.machine["user"] = "anna";
  return run;
}

TEST(AccountTest, PartsSumToWhatWasGivenToTheNanosecond) {
  for (const int ranks : {1, 3, 7}) {
    const RunAccount account = AccountOf(ARun({.data_ms = 77}, ranks));
    EXPECT_EQ(account.devices, ranks);
    EXPECT_EQ(account.given_ns, int64_t{ranks} * (1000 + 100 * 177 + 5000) * kMs);
    EXPECT_EQ(Sum(account), account.given_ns);
  }
}

TEST(AccountTest, WasteIsWhatAFindingSaysThatTheDeviceWaitsFor) {
  const RunAccount account = AccountOf(ARun({.data_ms = 100}));
  EXPECT_NEAR(static_cast<double>(Of(account, Kind::kWaste, "input-bound")), 100.0 * 100 * kMs, 0.02 * 1e10);
  EXPECT_NEAR(static_cast<double>(Of(account, Kind::kWork)), 100.0 * 100 * kMs, 0.02 * 1e10);
  EXPECT_NEAR(static_cast<double>(Of(account, Kind::kStart)), 1e9, 0.3e9);
  EXPECT_EQ(Of(account, Kind::kEnd), 5000 * kMs);
  EXPECT_EQ(account.user, "anna");
  EXPECT_EQ(account.device, "cpu");
  ASSERT_FALSE(account.advice.empty());
  EXPECT_EQ(account.advice[0].finding, "input-bound");
  EXPECT_GT(account.advice[0].SavesNs(account.advice[0].expected), 0);
}

TEST(AccountTest, WhatRunsWithinARunRecordedCountsThereAlone) {
  record::Recording run = MadeRun({});
  record::Stage& stage = run.stages[0];
  stage.begin_ns = 1000 * kMs;
  stage.end_ns = 11'000 * kMs;
  const auto process = [&](const char* role, int64_t begin_ms, int64_t end_ms) {
    record::Process& made = stage.processes.emplace_back();
    made.role = role;
    made.begin_ns = begin_ms * kMs;
    made.end_ns = end_ms * kMs;
  };
  process("other", 1000, 11'000);
  EXPECT_EQ(AccountOf(run).given_ns, 10'000 * kMs);
  process("recorder", 500, 2000);  // from before the stage
  process("recorder", 3000, 6000);
  process("recorder", 4000, 5000);  // beside the one before
  process("recorder", 10'500, 0);   // it still runs
  EXPECT_EQ(AccountOf(run).given_ns, (10'000 - 1000 - 3000 - 500) * kMs);
  EXPECT_EQ(Sum(AccountOf(run)), AccountOf(run).given_ns);
  run.machine["job_gpus"] = "4";
  EXPECT_EQ(AccountOf(run).given_ns, 4 * (10'000 - 1000 - 3000 - 500) * kMs);
}

// Seven ranks wait for the first one, which waits for nobody.
TEST(AccountTest, ARankThatTheOthersWaitForWastesNothing) {
  std::vector<record::RankInfo> ranks;
  for (int rank = 0; rank < 8; ++rank) {
    ranks.push_back(MadeRank(rank, 100, [&](int64_t) {
      return rank == 0 ? MadeStep{.forward_ms = 80} : MadeStep{.comm_ms = 40};
    }));
  }
  record::Recording run = MadeRun(std::move(ranks));
  run.stages[0].end_ns = run.stages[0].ranks[0].steps.back().end_ns;
  const RunAccount account = AccountOf(run);
  const double steady = 8.0 * 100 * 140 * kMs;
  EXPECT_NEAR(static_cast<double>(Of(account, Kind::kWaste, "straggler")), steady * 7 / 8 * 40 / 140,
              0.02 * steady);
  EXPECT_EQ(Sum(account), account.given_ns);
}

// What no finding names is work, however little of it the device does.
TEST(AccountTest, AWaitTooSmallForAFindingIsNoWaste) {
  const RunAccount account = AccountOf(ARun({.data_ms = 2}));
  EXPECT_EQ(Of(account, Kind::kWaste, "input-bound"), 0);
  EXPECT_EQ(Sum(account), account.given_ns);
}

TEST(AccountTest, WhatCannotBeJudgedIsNoWaste) {
  record::Recording run = ARun({});
  run.stages[0].ranks.clear();
  run.machine["job_gpus"] = "4";
  const RunAccount account = AccountOf(run);
  EXPECT_EQ(account.devices, 4);
  EXPECT_EQ(Of(account, Kind::kNotJudged), account.given_ns);
  EXPECT_EQ(Sum(account), account.given_ns);
}

TEST(AccountTest, ASpeedupOfOneSavesNothing) {
  Advice advice;
  advice.steady_ns = 1000;
  EXPECT_EQ(advice.SavesNs(1), 0);
  EXPECT_EQ(advice.SavesNs(0.5), 0);
  EXPECT_EQ(advice.SavesNs(2), 500);
}

TEST(AccountTest, PartsOfOneKindAndCauseAreAddedUp) {
  std::vector<Part> parts;
  AddUp(parts, {Kind::kWaste, "input-bound", 1});
  AddUp(parts, {Kind::kWork, "", 2});
  AddUp(parts, {Kind::kWaste, "comm-bound", 4});
  AddUp(parts, {Kind::kWaste, "input-bound", 8});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].kind, Kind::kWork);
  EXPECT_EQ(parts[2].cause, "input-bound");
  EXPECT_EQ(parts[2].device_ns, 9);
}

}  // namespace
}  // namespace fullbore::fleet
