#include "tune/trial/as_it_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullbore::tune {
namespace {

using record::Share;
using testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

// 200 steps of 32 samples: 10 ms of forward, and the rest of the loop.
record::Recording Recorded(const std::string& id, int64_t other_ns) {
  record::RankInfo rank;
  for (int64_t i = 0; i < 200; ++i) {
    record::Step step;
    step.index = i;
    step.wall_ns = 10 * kMs + other_ns + (i % 7) * 20'000;
    step.end_ns = (i + 1) * step.wall_ns;
    step.samples = 32;
    step.batches = 1;
    step.share_ns[static_cast<size_t>(Share::kHostOther)] = other_ns;
    step.share_ns[static_cast<size_t>(Share::kForward)] = step.wall_ns - other_ns;
    rank.steps.push_back(step);
  }
  record::Stage stage;
  stage.ranks.push_back(std::move(rank));
  record::Recording recording;
  recording.id = id;
  recording.source = "run";
  recording.stages.push_back(std::move(stage));
  return recording;
}

record::RunSummary Summary(std::vector<std::string> command, std::optional<int> status) {
  record::RunSummary run;
  record::Stage stage;
  stage.command = std::move(command);
  stage.directory = "/home/u";
  stage.exit_status = status;
  run.stages.push_back(std::move(stage));
  return run;
}

TEST(AsItRunsTest, ARunThatSpendsTimeWhereATrialDoesNotIsTold) {
  const auto said = DifferenceFromRun(Recorded("2026-11-25-2036-train", 4 * kMs), Recorded("trial", 0));
  ASSERT_TRUE(said);
  EXPECT_THAT(*said, HasSubstr("while run 2026-11-25-2036-train of the same command"));
  EXPECT_THAT(
      *said,
      HasSubstr("Most of the difference is in host_other: 4.0 ms a step in that run, and 0 s in the trial"));
}

TEST(AsItRunsTest, ATrialThatGoesAsTheRunGoesSaysNothing) {
  EXPECT_FALSE(DifferenceFromRun(Recorded("run", 4 * kMs), Recorded("trial", 4 * kMs)));
  EXPECT_FALSE(DifferenceFromRun(Recorded("run", 4 * kMs), Recorded("trial", 4 * kMs + 300'000))) << "2 %";
}

TEST(AsItRunsTest, AnotherModelMachineOrBatchIsNotCompared) {
  const record::Recording trial = Recorded("trial", 0);
  record::Recording run = Recorded("run", 4 * kMs);
  run.stages[0].ranks[0].facts["batch_shape"] = "[64,3,32,32]";
  EXPECT_TRUE(DifferenceFromRun(run, trial)) << "unknown of one";
  record::Recording known = trial;
  known.stages[0].ranks[0].facts["batch_shape"] = "[32,3,32,32]";
  EXPECT_FALSE(DifferenceFromRun(run, known));
  run = Recorded("run", 4 * kMs);
  run.machine["hostname"] = "other";
  EXPECT_FALSE(DifferenceFromRun(run, trial));
}

TEST(AsItRunsTest, WhatWasNotRecordedIsNotCompared) {
  EXPECT_FALSE(DifferenceFromRun({}, Recorded("trial", 0)));
}

TEST(AsItRunsTest, OnlyARunOfTheCommandThatCameToItsOwnEndIsOne) {
  const std::vector<std::string> command = {"python", "train.py", "--api-key", "hunter2"};
  const std::vector<std::string> kept = {"python", "train.py", "--api-key", "***"};
  EXPECT_TRUE(IsRunOf(Summary(kept, 0), command, "/home/u"));
  EXPECT_TRUE(IsRunOf(Summary(kept, 130), command, "/home/u")) << "Ctrl-C";
  EXPECT_FALSE(IsRunOf(Summary(kept, 143), command, "/home/u")) << "as a trial is ended";
  EXPECT_FALSE(IsRunOf(Summary(kept, std::nullopt), command, "/home/u")) << "it still runs";
  EXPECT_FALSE(IsRunOf(Summary(kept, 0), command, "/home/u/elsewhere"));
  EXPECT_FALSE(IsRunOf(Summary({"python", "other.py"}, 0), command, "/home/u"));
  record::RunSummary trial = Summary(kept, 0);
  trial.tags["tune"] = "0123";
  EXPECT_FALSE(IsRunOf(trial, command, "/home/u"));
}

}  // namespace
}  // namespace fullbore::tune
