#include "cli/tune_answer.h"

#include <gmock/gmock.h>

namespace fullbore::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

tune::Trial Measured(tune::Settings settings, double rate) {
  tune::Trial trial;
  trial.settings = std::move(settings);
  trial.rate = {rate, rate * 0.99, rate * 1.01};
  trial.run = "2026-11-27-train";
  return trial;
}

std::string Printed(const tune::Answer& answer, const tune::AnswerContext& context = {}) {
  testing::internal::CaptureStdout();
  PrintAnswer(answer, context);
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

TEST(PrintAnswerTest, SaysWhatToDoAndHowToHaveItWithoutAnEdit) {
  tune::Answer answer;
  answer.trials = {Measured({}, 100), Measured({{"num_workers", 2}}, 180)};
  answer.baseline = answer.trials[0];
  answer.recommended = answer.trials[1];
  answer.gain = {1.8, 1.7, 1.9};
  tune::AnswerContext context;
  context.command = {"python", "train.py"};
  EXPECT_THAT(Printed(answer, context),
              AllOf(HasSubstr("Recommended: num_workers=2"), HasSubstr("1.80x (1.70 to 1.90)"),
                    HasSubstr("DataLoader(num_workers=2)"), HasSubstr("--apply 2026-11-27-train")));
}

TEST(PrintAnswerTest, WhereNothingIsBetterTheScriptStaysAsItIs) {
  tune::Answer answer;
  answer.trials = {Measured({}, 100)};
  answer.baseline = answer.recommended = answer.trials[0];
  EXPECT_THAT(Printed(answer),
              AllOf(HasSubstr("Recommended: the script as it is."), Not(HasSubstr("--apply"))));
}

TEST(PrintAnswerTest, ARateInAnotherUnitSaysWhich) {
  tune::Answer answer;
  answer.trials = {Measured({}, 100), Measured({{"num_workers", 2}}, 7)};
  answer.trials[1].unit = tune::kStepsPerSecond;
  answer.baseline = answer.recommended = answer.trials[0];
  EXPECT_THAT(Printed(answer), HasSubstr("steps/s"));
}

TEST(PrintAnswerTest, AReasonIsSaidOnce) {
  tune::Answer answer;
  answer.trials = {Measured({}, 100)};
  answer.baseline = answer.recommended = answer.trials[0];
  for (const int workers : {2, 4}) {
    tune::Trial failed;
    failed.settings = {{"num_workers", workers}};
    failed.outcome = tune::Outcome::kCrashed;
    failed.why = "no room in /dev/shm";
    answer.trials.push_back(failed);
  }
  const std::string printed = Printed(answer);
  const size_t first = printed.find("no room in /dev/shm");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(printed.find("no room in /dev/shm", first + 1), std::string::npos);
}

TEST(PrintAnswerTest, WithoutAMeasurementItSaysWhyAndHowToGoOn) {
  tune::AnswerContext context;
  context.reason = "the budget of 20 s ended";
  context.resume = "fullbore tune --resume x";
  EXPECT_THAT(Printed({}, context), AllOf(HasSubstr("Nothing could be measured: the budget of 20 s ended"),
                                          HasSubstr("fullbore tune --resume x goes on")));
}

}  // namespace
}  // namespace fullbore::cli
