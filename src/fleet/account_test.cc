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

// Steps of 100 ms, of which each tenth saves a checkpoint of 200 ms or validates for 300 ms.
record::Recording ARunThat(record::HostOther does, int64_t for_ms) {
  record::Recording run = ARun({});
  int64_t now_ns = 1000 * kMs;
  for (record::Step& step : run.stages[0].ranks[0].steps) {
    if (step.index % 10 == 9) {
      step.share_ns[Index(record::Share::kHostOther)] = for_ms * kMs;
      step.host_other_ns[static_cast<size_t>(does)] = for_ms * kMs;
      step.wall_ns += for_ms * kMs;
    }
    step.end_ns = now_ns += step.wall_ns;
  }
  run.stages[0].end_ns = now_ns + 1000 * kMs;
  return run;
}

record::Recording Died(record::Recording run, int exit_status = 1) {
  run.stages[0].exit_status = exit_status;
  return run;
}

TEST(AccountTest, CheckpointsAndValidationAreNoWasteThoughAFindingNamesThem) {
  const RunAccount saves = AccountOf(ARunThat(record::HostOther::kCheckpoint, 200));
  EXPECT_NEAR(static_cast<double>(Of(saves, Kind::kCheckpoint)), 10 * 200.0 * kMs, 1e8);
  EXPECT_EQ(Of(saves, Kind::kWaste, "host-other"), 0);
  EXPECT_TRUE(saves.saves);
  EXPECT_FALSE(saves.advice.empty()) << "to save less often";
  const RunAccount validates = AccountOf(ARunThat(record::HostOther::kValidation, 300));
  EXPECT_NEAR(static_cast<double>(Of(validates, Kind::kValidation)), 10 * 300.0 * kMs, 1e8);
  EXPECT_EQ(Of(validates, Kind::kCheckpoint), 0);
  EXPECT_EQ(Sum(validates), validates.given_ns);
}

// The same time without a name is what the loop does besides.
TEST(AccountTest, WhatTheLoopDoesBesidesIsWaste) {
  const RunAccount account = AccountOf(ARunThat(record::HostOther::kUnnamed, 200));
  EXPECT_GT(Of(account, Kind::kWaste, "host-other"), 0);
  EXPECT_EQ(Of(account, Kind::kCheckpoint), 0);
  EXPECT_EQ(Sum(account), account.given_ns);
}

TEST(AccountTest, StepsAfterTheLastCheckpointOfARunThatDiedAreLost) {
  record::Recording run = Died(ARunThat(record::HostOther::kCheckpoint, 200));
  std::vector<record::Step>& steps = run.stages[0].ranks[0].steps;
  steps.erase(steps.begin() + 97, steps.end());  // the last checkpoint was in step 89
  const RunAccount account = AccountOf(run);
  EXPECT_EQ(Of(account, Kind::kLost), 700 * kMs);
  EXPECT_EQ(Sum(account), account.given_ns);
  EXPECT_TRUE(account.EndedBadly());
  run.stages[0].exit_status = 0;
  EXPECT_EQ(Of(AccountOf(run), Kind::kLost), 0) << "what ends well loses nothing";
}

// As the recorder saw it: also in a thread beside, or after the last step.
TEST(AccountTest, TheRecordersWordOnTheLastCheckpointComesFirst) {
  record::Recording run = Died(ARun({}));
  record::RankInfo& rank = run.stages[0].ranks[0];
  const auto saved_at = [&](int64_t ns) {
    rank.facts["checkpoints"] = "{\"count\": 3, \"last_end_ns\": " + std::to_string(ns) + "}";
  };
  saved_at(rank.steps[79].end_ns + 40 * kMs);
  EXPECT_EQ(Of(AccountOf(run), Kind::kLost), 1960 * kMs);
  saved_at(rank.steps.back().end_ns + 40 * kMs);
  EXPECT_EQ(Of(AccountOf(run), Kind::kLost), 0);
  rank.node = 1;  // whose clock is another one
  EXPECT_TRUE(AccountOf(run).lost_unknown);
}

TEST(AccountTest, WhatARunWithoutACheckpointLostIsNotKnown) {
  const record::Recording run = Died(ARun({}));
  const RunAccount account = AccountOf(run);
  EXPECT_TRUE(account.lost_unknown);
  EXPECT_EQ(Of(account, Kind::kLost), 0);
  EXPECT_GT(Of(account, Kind::kWork), 0);
  // Unless other runs of its job show that it saves.
  const RunAccount known = AccountOf(run, {.saves = true});
  EXPECT_FALSE(known.lost_unknown);
  EXPECT_EQ(Of(known, Kind::kWork), 0);
  EXPECT_EQ(Of(known, Kind::kLost), Of(account, Kind::kWork));
}

TEST(AccountTest, ARunThatGoesOnHasLostNothingYet) {
  record::Recording run = ARunThat(record::HostOther::kCheckpoint, 200);
  run.stages[0].state = record::StageState::kRunning;
  run.stages[0].ranks[0].steps.resize(97);
  const RunAccount live = AccountOf(run);
  EXPECT_EQ(Of(live, Kind::kLost), 0);
  EXPECT_FALSE(live.ended);
  const RunAccount gone = AccountOf(run, {.cut_off = true});
  EXPECT_EQ(Of(gone, Kind::kLost), 700 * kMs);
  EXPECT_TRUE(gone.EndedBadly());
}

TEST(AccountTest, ARunThatLostAMachineEndedBadlyWhateverTheOthersSay) {
  record::Recording run = ARunThat(record::HostOther::kCheckpoint, 200);
  run.stages[0].ranks[0].steps.resize(97);
  run.stages[0].nodes.resize(2);
  EXPECT_EQ(Of(AccountOf(run), Kind::kLost), 0);
  run.stages[0].nodes[1].cut_off = true;
  EXPECT_EQ(Of(AccountOf(run), Kind::kLost), 700 * kMs);
}

// The first ten steps take 500 ms, 300 ms of the first of which a compiler takes.
TEST(AccountTest, CompilationAndWarmUpAreApartFromTheStart) {
  record::Recording run = ARun({});
  int64_t now_ns = 1000 * kMs;
  for (record::Step& step : run.stages[0].ranks[0].steps) {
    if (step.index < 10) {
      step.share_ns[Index(record::Share::kHostOther)] = 400 * kMs;
      step.wall_ns += 400 * kMs;
    }
    if (step.index == 0) step.host_other_ns[static_cast<size_t>(record::HostOther::kCompilation)] = 300 * kMs;
    step.end_ns = now_ns += step.wall_ns;
  }
  run.stages[0].end_ns = now_ns;
  const RunAccount account = AccountOf(run);
  EXPECT_EQ(Of(account, Kind::kStart), 1000 * kMs);
  EXPECT_EQ(Of(account, Kind::kCompile), 300 * kMs);
  EXPECT_EQ(Of(account, Kind::kWarmUp), (5000 - 300) * kMs);
  EXPECT_EQ(Sum(account), account.given_ns);
}

record::Recording OfADevice(record::RankInfo& rank) {
  rank.device_activity = true;
  for (record::Step& step : rank.steps) {
    step.share_ns = {};
    step.share_ns[Index(record::Share::kCompute)] = step.wall_ns;
  }
  record::Recording run = MadeRun({rank});
  run.stages[0].end_ns = rank.steps.back().end_ns;
  return run;
}

TEST(AccountTest, WhatIsComputedAgainIsAPartOfTheDevicesWork) {
  record::RankInfo rank = MadeRank(0, 100, [](int64_t) { return MadeStep{}; });
  rank.noticed.computed_ns = 100;
  rank.noticed.recomputed_ns = 25;
  const RunAccount account = AccountOf(OfADevice(rank));
  EXPECT_NEAR(static_cast<double>(Of(account, Kind::kRecomputation)), 0.25 * 100 * 100 * kMs, 1e6);
  EXPECT_EQ(Sum(account), account.given_ns);
  rank.noticed.recomputed_ns = 5;  // no finding
  EXPECT_EQ(Of(AccountOf(OfADevice(rank)), Kind::kRecomputation), 0);
}

// Half of the device's time is spent in products that need a tenth of it, where its limit is known.
TEST(AccountTest, KernelsBelowTheirLimitAreKnownWhereTheLimitIs) {
  record::RankInfo rank = MadeRank(0, 100, [](int64_t) { return MadeStep{}; });
  rank.roofline.emplace();
  rank.roofline->classes = {{"matmul_tensor", 10'000 * kMs, 10'000 * kMs, 0, 0, std::nullopt}};
  record::RooflineOperator& product = rank.roofline->operators.emplace_back();
  product.name = "aten::mm";
  product.device_ns = 8'000 * kMs;
  product.attainable_ns = 800.0 * kMs;
  product.why = {{record::RooflineReason::kMisaligned, "a dimension of 1001"}};
  EXPECT_EQ(Of(AccountOf(OfADevice(rank)), Kind::kSlowKernels), 0);
  rank.roofline->device = "NVIDIA H100";
  const RunAccount account = AccountOf(OfADevice(rank));
  EXPECT_NEAR(static_cast<double>(Of(account, Kind::kSlowKernels)), 0.72 * 100 * 100 * kMs, 1e6);
  EXPECT_EQ(Sum(account), account.given_ns);
}

// Three tokens in four fill samples to one length: so much of the passes, 95 ms of each step's 100.
TEST(AccountTest, PaddingIsAPartOfTheWork) {
  record::Recording run = ARun({});
  run.stages[0].ranks[0].facts["tokens"] =
      R"({"batches": 16, "rows": 128, "computed": [12800, 1280000], "useful": 3200, "longest": [6400, 320000],
          "widths": 1, "lengths": [10, 15, 25, 35, 50], "follows": 1.0})";
  const RunAccount account = AccountOf(run);
  EXPECT_NEAR(static_cast<double>(Of(account, Kind::kPadding)), 0.75 * 0.95 * 100 * 100 * kMs, 1e6);
  EXPECT_EQ(Sum(account), account.given_ns);
  run.stages[0].ranks[0].device = "cuda:0";  // what the host's passes take is not the device's time
  EXPECT_EQ(Of(AccountOf(run), Kind::kPadding), 0);
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
  const int64_t left_ns = (10'000 - 1000 - 3000 - 500) * kMs;
  EXPECT_EQ(AccountOf(run).given_ns, left_ns);
  EXPECT_EQ(Sum(AccountOf(run)), AccountOf(run).given_ns);
  run.machine["job_gpus"] = "4";
  EXPECT_EQ(AccountOf(run).given_ns, 4 * left_ns);
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

}  // namespace
}  // namespace fullbore::fleet
