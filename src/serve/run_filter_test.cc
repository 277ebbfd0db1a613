#include "serve/run_filter.h"

#include <gtest/gtest.h>

namespace fullbore::serve {
namespace {

watch::KnownRun Running() {
  watch::KnownRun run;
  run.state = watch::RunState::kRunning;
  run.summary.stages.resize(1);
  run.summary.stages[0].command = {"python", "train.py", "--lr", "3e-4"};
  run.summary.tags = {{"lr", "3e-4"}, {"Stage", "Draft"}};
  run.summary.note = "Before the new sampler";
  run.judgement.emplace();
  run.judgement->finding = "input-bound";
  run.judgement->cause = "no-workers";
  run.judgement->verdict = "Training waits for data 61 % of the time.";
  return run;
}

bool Matches(const std::string& typed, const watch::KnownRun& run = Running()) {
  const auto filter = RunFilter::Parse(typed);
  EXPECT_TRUE(filter.ok()) << typed;
  return filter.ok() && filter->Matches("brisk-otter", run);
}

TEST(RunFilterTest, WordsAreSearchedForInAllThatAListShows) {
  EXPECT_TRUE(Matches(""));
  EXPECT_TRUE(Matches("otter"));
  EXPECT_TRUE(Matches("TRAIN.PY"));
  EXPECT_TRUE(Matches("draft"));
  EXPECT_TRUE(Matches("sampler"));
  EXPECT_TRUE(Matches("waits"));
  EXPECT_FALSE(Matches("resnet"));
}

TEST(RunFilterTest, AllWordsMustMatchAndAMinusTurnsOneAround) {
  EXPECT_TRUE(Matches("otter train.py"));
  EXPECT_FALSE(Matches("otter resnet"));
  EXPECT_TRUE(Matches("otter -resnet"));
  EXPECT_FALSE(Matches("-otter"));
  EXPECT_FALSE(Matches("-state:running"));
}

TEST(RunFilterTest, AFieldLooksOnlyThere) {
  EXPECT_TRUE(Matches("state:run"));
  EXPECT_FALSE(Matches("state:ended"));
  EXPECT_TRUE(Matches("finding:input-bound finding:no-workers"));
  EXPECT_FALSE(Matches("finding:input"));
  EXPECT_TRUE(Matches("command:3e-4 run:otter note:before"));
  EXPECT_FALSE(Matches("run:train.py"));
}

TEST(RunFilterTest, ATagIsFoundByItsNameOrByItsValueToo) {
  EXPECT_TRUE(Matches("tag:lr"));
  EXPECT_TRUE(Matches("tag:LR=3E-4"));
  EXPECT_TRUE(Matches("tag:stage=draft"));
  EXPECT_FALSE(Matches("tag:lr=3e"));
  EXPECT_FALSE(Matches("tag:draft"));
}

TEST(RunFilterTest, FailedIsWhateverDidNotEndWithZero) {
  watch::KnownRun run = Running();
  EXPECT_FALSE(Matches("state:failed", run)) << "it still runs";
  run.summary.stages[0].exit_status = 0;
  EXPECT_FALSE(Matches("state:failed", run));
  run.summary.stages[0].exit_status = 1;
  EXPECT_TRUE(Matches("state:failed", run));
  run.summary.stages[0].exit_status.reset();
  run.summary.stages[0].out_of_memory = true;
  EXPECT_TRUE(Matches("state:failed", run));
}

TEST(RunFilterTest, ARunThatNobodyHasJudgedHasNoFinding) {
  watch::KnownRun run = Running();
  run.judgement.reset();
  EXPECT_FALSE(Matches("finding:input-bound", run));
  EXPECT_TRUE(Matches("-finding:input-bound", run));
}

TEST(RunFilterTest, AFieldThatDoesNotExistIsNamedTogetherWithThoseThatDo) {
  const auto filter = RunFilter::Parse("otter colour:red");
  ASSERT_FALSE(filter.ok());
  EXPECT_NE(filter.error().text.find("'colour'"), std::string::npos);
  EXPECT_NE(filter.error().hint.find("state:"), std::string::npos);
}

}  // namespace
}  // namespace fullbore::serve
