#include "tune/search/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "base/testing/scratch_directory.h"

namespace fullbore::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MachineTest : public testing::Test {
 protected:
  MeasureOptions Running(const std::string& script) {
    MeasureOptions options;
    options.command = {"/bin/sh", "-c", script};
    options.metric = "([0-9.]+) img/s";
    options.patience_s = 60;
    options.directory = directory_.path() + "/runs";
    return options;
  }
  Place Here() {
    return {std::nullopt, [this](const std::string& line) { said_.push_back(line); }};
  }

  ScratchDirectory directory_;
  std::vector<std::string> said_;
  Kept kept_{directory_.path(), directory_.path(), {"train"}};
};

Request Of(const char* knob, int64_t value) {
  Request request;
  request.settings = {{knob, value}};
  request.why = "a guess";
  return request;
}

TEST_F(MachineTest, SaysWhatItTriesAndWhatBecameOfIt) {
  Machine machine(Here(), Running("echo no room >&2; exit 3"), 600, kept_);
  const Trial trial = machine.Try(Of("num_workers", 2));
  EXPECT_EQ(trial.outcome, Outcome::kCrashed);
  EXPECT_EQ(trial.settings, Settings({{"num_workers", 2}}));
  EXPECT_FALSE(machine.IsOver()) << "a trial that fails ends no search";
  EXPECT_THAT(said_,
              ElementsAre(HasSubstr("trial 1: num_workers=2 (a guess), at most"), HasSubstr("crashed, ")));
}

TEST_F(MachineTest, AnInterruptedSearchGoesOnWithWhatWasKept) {
  {
    Machine machine(Here(), Running("exit 3"), 600, kept_);
    machine.Try(Of("num_workers", 2));
  }
  Kept again(directory_.path(), directory_.path(), {"train"});
  ASSERT_TRUE(again.Load().ok());
  said_.clear();
  Machine machine(Here(), Running("exit 4"), 600, again);
  EXPECT_THAT(machine.Try(Of("num_workers", 2)).why, HasSubstr("exit status 3"));
  EXPECT_THAT(said_, IsEmpty()) << "nothing ran";
  EXPECT_THAT(machine.Try(Of("num_workers", 4)).why, HasSubstr("exit status 4"));
}

TEST_F(MachineTest, ACommandThatCannotBeStartedEndsTheSearch) {
  MeasureOptions options = Running("");
  options.command = {directory_.path() + "/not-there"};
  Machine machine(Here(), options, 600, kept_);
  machine.Try({});
  ASSERT_TRUE(machine.error().has_value());
  EXPECT_THAT(machine.error()->text, HasSubstr("not-there"));
  EXPECT_TRUE(machine.IsOver());
}

TEST_F(MachineTest, TheBudgetEndsATrialThatHasNotBegunToTrain) {
  Machine machine(Here(), Running("sleep 600"), 0.3, kept_);
  const Trial trial = machine.Try({});
  EXPECT_FALSE(trial.ok());
  EXPECT_TRUE(machine.IsOver());
  EXPECT_THAT(trial.why, HasSubstr("the budget of 0.3 s"));
  Answer answer;
  answer.trials = {trial};
  EXPECT_THAT(machine.Reason(answer), HasSubstr("--budget gives it more time"));
}

TEST_F(MachineTest, ATrialWithoutARecordingTeachesNothing) {
  Machine machine(Here(), Running(""), 600, kept_);
  EXPECT_FALSE(machine.Learn({}).has_value());
}

TEST_F(MachineTest, CtrlCEndsTheSearchAndAfterItDoesWhatItDidBefore) {
  struct sigaction before = {};
  struct sigaction after = {};
  sigaction(SIGINT, nullptr, &before);
  {
    Machine machine(Here(), Running("exit 3"), 600, kept_);
    raise(SIGINT);
    EXPECT_TRUE(machine.IsOver());
    EXPECT_EQ(machine.interrupted_by(), SIGINT);
    EXPECT_THAT(machine.Reason({}), HasSubstr("it was interrupted"));
  }
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  EXPECT_FALSE(Machine(Here(), Running("exit 3"), 600, kept_).IsOver());
}

TEST_F(MachineTest, WhereALineIsReadForTheRateNoTwoTrialsTakeTurns) {
  Machine machine(Here(), Running("exit 3"), 600, kept_);
  EXPECT_FALSE(machine.TryPair({}, Of("num_workers", 2)).has_value());
  EXPECT_THAT(said_, IsEmpty());
}

}  // namespace
}  // namespace fullbore::tune
