#include "timeline/passes.h"

#include <gtest/gtest.h>

#include <utility>

#include "record/activity.h"

namespace fullbore::timeline {
namespace {

using record::ChannelRecord;
using record::EventKind;

constexpr uint16_t kTrainingLoader = 1, kOtherLoader = 7;
constexpr int64_t kTrained = record::kPassOfTrained, kApart = record::kPassOfApart;
constexpr int64_t kEval = record::kPassInEvaluation, kGradients = record::kPassWithGradients;

// The events of one step of a program, one after the other.
class AStep {
 public:
  AStep& Batch(uint16_t loader, bool first = false) {
    ChannelRecord& event = Add(EventKind::kNext, 5);
    event.id = loader;
    event.a = 16;
    event.c = first ? 1 : 0;
    return *this;
  }
  AStep& EndOfEpoch(uint16_t loader) {
    Add(EventKind::kNext, 5).id = loader;
    return *this;
  }
  AStep& Pass(int64_t about, int64_t ns = 100) {
    Add(EventKind::kForward, ns).c = about;
    return *this;
  }
  AStep& After(int64_t ns) {
    now_ns_ += ns;
    return *this;
  }
  AStep& Waits(int64_t ns) {
    Add(EventKind::kSync, ns);
    return *this;
  }
  AStep& Sampled(record::Activity activity) {
    Add(EventKind::kLine, 0).c = static_cast<int64_t>(activity);
    return *this;
  }
  AStep& Trains(uint16_t loader = 0) {
    if (loader != 0) Batch(loader);
    Add(EventKind::kForward, 100).a = 1;
    Add(EventKind::kBackward, 200);
    Add(EventKind::kOptimizer, 20).a = 1;
    return *this;
  }
  AStep& Backward() {
    Add(EventKind::kBackward, 200);
    return *this;
  }
  operator const std::vector<ChannelRecord>&() const {
    return events_;
  }  // NOLINT(google-explicit-constructor)

 private:
  ChannelRecord& Add(EventKind kind, int64_t ns) {
    ChannelRecord event{};
    event.kind = static_cast<uint16_t>(kind);
    event.begin_ns = now_ns_;
    event.end_ns = now_ns_ += ns;
    events_.push_back(event);
    return events_.back();
  }

  std::vector<ChannelRecord> events_;
  int64_t now_ns_ = 1000;
};

class PassesTest : public testing::Test {
 protected:
  // What the last pass of the step before its training is for.
  PassFor LastOf(const std::vector<ChannelRecord>& step) {
    const std::vector<PassFor> named = passes_.Of(step, {kTrainingLoader});
    PassFor last = PassFor::kTraining;
    for (size_t i = 0; i < step.size(); ++i) {
      if (static_cast<EventKind>(step[i].kind) == EventKind::kForward && step[i].a == 0) last = named[i];
    }
    return last;
  }
  // The same of a step that comes after `steps` usual ones.
  PassFor LastAfter(int steps, const std::vector<ChannelRecord>& step) {
    for (int i = 0; i < steps; ++i) passes_.Of(AStep().Trains(kTrainingLoader), {kTrainingLoader});
    return LastOf(step);
  }
  // The same where each step is like this one.
  PassFor LastOfEach(const std::vector<ChannelRecord>& step) {
    for (int i = 0; i < 20; ++i) passes_.Of(step, {kTrainingLoader});
    return LastOf(step);
  }

  Passes passes_;
};

TEST_F(PassesTest, ALoaderOfItsOwnTellsAValidation) {
  AStep step;
  for (int i = 0; i < 3; ++i) step.Batch(kOtherLoader, i == 0).Pass(kEval | kTrained);
  EXPECT_EQ(LastOfEach(step.Trains(kTrainingLoader)), PassFor::kValidation) << "in each step, too";
}

TEST_F(PassesTest, ALoaderThatIsBegunAnewTellsAValidation) {
  AStep step;
  for (int i = 0; i < 3; ++i) step.Batch(kTrainingLoader, i == 0).Pass(kEval | kTrained);
  EXPECT_EQ(LastAfter(20, step.Trains(kTrainingLoader)), PassFor::kValidation);
}

TEST_F(PassesTest, BatchesThatAreWeighedBeforeOneIsTrainedOnAreNoValidation) {
  AStep step;
  for (int i = 0; i < 3; ++i) step.Batch(kTrainingLoader).Pass(kEval | kTrained);
  EXPECT_EQ(LastOfEach(step.Trains()), PassFor::kUnknown);
}

TEST_F(PassesTest, AnAveragedCopyValidatesOverALoaderOfItsOwn) {
  AStep step;
  for (int i = 0; i < 3; ++i) step.Batch(kOtherLoader, i == 0).Pass(kEval | kApart | record::kPassOfCopy);
  EXPECT_EQ(LastAfter(20, step.Trains(kTrainingLoader)), PassFor::kValidation);
}

TEST_F(PassesTest, ATeacherIsAFrozenNetworkThoughItsBatchComesFromAnotherLoader) {
  const AStep step = AStep().Batch(kOtherLoader).Pass(kEval | kApart).Trains(kTrainingLoader);
  EXPECT_EQ(LastOfEach(step), PassFor::kFrozen);
}

TEST_F(PassesTest, WhatTheOptimizersHoldMayNotBeKnown) {
  AStep step;
  for (int i = 0; i < 3; ++i) step.Batch(kOtherLoader, i == 0).Pass(kEval);
  EXPECT_EQ(LastAfter(20, step.Trains(kTrainingLoader)), PassFor::kValidation);
}

TEST_F(PassesTest, OtherDataInASeldomStretchIsAValidation) {
  AStep step;
  for (int i = 0; i < 10; ++i) step.Pass(kEval | kTrained).After(5);
  EXPECT_EQ(LastAfter(20, step.Trains(kTrainingLoader)), PassFor::kValidation);
}

TEST_F(PassesTest, TheSameInEachStepIsNotTold) {
  AStep step;
  for (int i = 0; i < 10; ++i) step.Pass(kEval | kTrained).After(5);
  EXPECT_EQ(LastOfEach(step.Trains(kTrainingLoader)), PassFor::kUnknown);
}

TEST_F(PassesTest, WhatWorksMoreBetweenThePassesThanInThemIsNoValidation) {
  AStep step;
  for (int i = 0; i < 10; ++i) step.Pass(kEval | kTrained).After(150);
  EXPECT_EQ(LastAfter(20, step.Trains(kTrainingLoader)), PassFor::kUnknown);
}

TEST_F(PassesTest, AProgramThatPlaysDoesNotValidateBetweenItsEpisodes) {
  AStep step;
  for (int i = 0; i < 10; ++i) step.Pass(kEval | kTrained).Sampled(record::Activity::kEnvironment).After(5);
  EXPECT_EQ(LastAfter(20, step.Trains(kTrainingLoader)), PassFor::kUnknown);
}

TEST_F(PassesTest, InTrainingModeNothingIsAValidation) {
  AStep step;
  for (int i = 0; i < 3; ++i) step.Batch(kOtherLoader, i == 0).Pass(kTrained);
  EXPECT_EQ(LastAfter(20, step.Trains(kTrainingLoader)), PassFor::kUnknown);
}

TEST_F(PassesTest, WhatTheFrameworkCallsAnEvaluationIsOne) {
  std::vector<ChannelRecord> step = AStep().Pass(0);
  step.front().b = 1;
  EXPECT_EQ(LastOf(step), PassFor::kValidation);
}

TEST_F(PassesTest, ATeacherInEachStepIsAFrozenNetwork) {
  EXPECT_EQ(LastOfEach(AStep().Batch(kTrainingLoader).Pass(kEval | kApart).Trains()), PassFor::kFrozen);
  EXPECT_EQ(LastOfEach(AStep().Batch(kTrainingLoader).Pass(kApart).Trains()), PassFor::kFrozen)
      << "though somebody forgot eval()";
  EXPECT_EQ(passes_.totals().frozen_ns, 42 * 100);
}

TEST_F(PassesTest, ANetworkApartThatIsCalledSeldomIsNotTold) {
  EXPECT_EQ(LastAfter(20, AStep().Pass(kEval | kApart).Trains(kTrainingLoader)), PassFor::kUnknown);
}

TEST_F(PassesTest, ALossWithoutParametersIsWhatThePassesAroundItAre) {
  const AStep step = AStep().Batch(kTrainingLoader).Pass(kEval | kApart).Pass(0).Trains();
  EXPECT_EQ(LastOfEach(step), PassFor::kFrozen);
  AStep validation;
  for (int i = 0; i < 3; ++i) validation.Batch(kOtherLoader, i == 0).Pass(kEval | kTrained).Pass(0);
  EXPECT_EQ(LastOf(validation.Trains(kTrainingLoader)), PassFor::kValidation);
}

TEST_F(PassesTest, AModelThatIsItsOwnTeacherIsNotTold) {
  EXPECT_EQ(LastOfEach(AStep().Batch(kTrainingLoader).Pass(kEval | kTrained).Trains()), PassFor::kUnknown);
}

TEST_F(PassesTest, WhatComputesGradientsInEvaluationModeTrains) {
  const AStep tuned = AStep().Batch(kTrainingLoader).Pass(kEval | kGradients | kTrained).Backward();
  EXPECT_EQ(LastOfEach(tuned), PassFor::kTraining);
  const AStep backbone = AStep().Batch(kTrainingLoader).Pass(kEval | kGradients | kApart).Trains();
  EXPECT_EQ(LastOfEach(backbone), PassFor::kTraining);
  EXPECT_EQ(passes_.totals().apart_ns, 21 * 100);
  EXPECT_EQ(passes_.totals().apart_first_ns, 21 * 100) << "before the head";
}

TEST_F(PassesTest, AValidationThatForgetsNoGradIsStillOne) {
  AStep step;
  for (int i = 0; i < 3; ++i) step.Batch(kOtherLoader, i == 0).Pass(kEval | kGradients | kTrained);
  EXPECT_EQ(LastAfter(20, step.Trains(kTrainingLoader)), PassFor::kValidation);
}

TEST_F(PassesTest, WhatIsComputedAgainWithinABackwardPassIsPartOfIt) {
  std::vector<ChannelRecord> step = AStep().Batch(kTrainingLoader).Trains();
  ChannelRecord again{};
  again.kind = static_cast<uint16_t>(EventKind::kForward);
  again.c = kTrained;
  again.begin_ns = step[2].begin_ns + 10;
  again.end_ns = step[2].begin_ns + 50;
  step.insert(step.begin() + 3, again);
  EXPECT_EQ(LastOfEach(step), PassFor::kTraining);
}

// A validation of ten passes of 100 ns; what follows each takes 20, and so much more from one to the next.
AStep Validation(int64_t more_ns) {
  AStep step;
  for (int i = 0; i < 10; ++i)
    step.Batch(kOtherLoader, i == 0).Pass(kEval | kTrained).After(20 + i * more_ns);
  return step.EndOfEpoch(kOtherLoader).After(300).Trains(kTrainingLoader);
}

TEST_F(PassesTest, WhatFollowsThePassesOfAValidationIsAddedUp) {
  passes_.Of(Validation(0), {kTrainingLoader});
  EXPECT_EQ(passes_.validations().count, 1);
  EXPECT_EQ(passes_.validations().between_ns, 9 * 20);
  EXPECT_EQ(passes_.validations().ns, 10 * 100 + 9 * (20 + 5));
  EXPECT_EQ(passes_.validations().growing_ns, 0);
  EXPECT_EQ(passes_.validations().after_ns, 20 + 300);
}

TEST_F(PassesTest, WhatTakesLongerFromPassToPassGrows) {
  passes_.Of(Validation(8), {kTrainingLoader});
  passes_.Of(Validation(8), {kTrainingLoader});
  EXPECT_EQ(passes_.validations().growing_ns, 2 * 8 * 36) << "8 after the second pass, 64 after the ninth";
}

TEST_F(PassesTest, OfAFewPassesNothingIsAddedUp) {
  AStep step;
  for (int i = 0; i < 7; ++i) step.Batch(kOtherLoader, i == 0).Pass(kEval | kTrained).After(20);
  passes_.Of(step.Trains(kTrainingLoader), {kTrainingLoader});
  EXPECT_EQ(passes_.validations().count, 0);
}

TEST_F(PassesTest, CopiesAndWaitsThatHaveTheirOwnNamesDoNotCountAsWhatFollows) {
  AStep step;
  for (int i = 0; i < 10; ++i)
    step.Batch(kOtherLoader, i == 0).Pass(kEval | kTrained).After(10).Waits(1000).After(10);
  passes_.Of(step.Trains(kTrainingLoader), {kTrainingLoader});
  EXPECT_EQ(passes_.validations().between_ns, 9 * 20);
}

// As accelerate does it, which has to know the last batch.
TEST_F(PassesTest, WhatFollowsTheLastPassOfALoaderThatIsAskedAheadIsNoPartOfTheValidation) {
  AStep step;
  step.Batch(kOtherLoader, true);
  for (int i = 0; i < 9; ++i) step.Batch(kOtherLoader).Pass(kEval | kTrained).After(20);
  step.EndOfEpoch(kOtherLoader).Pass(kEval | kTrained).After(300);
  passes_.Of(step.Trains(kTrainingLoader), {kTrainingLoader});
  EXPECT_EQ(passes_.validations().growing_ns, 0);
  EXPECT_EQ(passes_.validations().after_ns, 300);
}

}  // namespace
}  // namespace fullbore::timeline
