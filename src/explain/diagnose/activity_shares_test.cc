#include "explain/diagnose/activity_shares.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Activity;
using record::HostOther;
using record::Share;
using testing::ARun;
using testing::ATraining;

record::HotLine Seen(Activity activity, int line, int64_t samples) {
  return {Share::kHostOther, "train.py", line, "", "", samples, HostOther::kUnnamed, activity, false, ""};
}

std::vector<ActivityShare> SharesOf(std::vector<record::HotLine> lines) {
  ARun run = ATraining().InEachStep(Share::kHostOther, 100);  // half of the step
  run.rank().hot_lines = std::move(lines);
  const record::Recording recording = run;
  return ActivitySharesOf(View(recording, recording.stages.front()).lead());
}

TEST(ActivitySharesTest, SumToTheTimeWithoutANameOfItsOwn) {
  const auto shares = SharesOf(
      {Seen(Activity::kLogging, 1, 30), Seen(Activity::kSleep, 2, 60), Seen(Activity::kUnknown, 3, 10)});
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares[0].activity, Activity::kSleep);
  EXPECT_NEAR(shares[0].of_step.ratio, 0.30, 1e-9);
  EXPECT_NEAR(shares[1].of_step.ratio, 0.15, 1e-9);
  EXPECT_NEAR(shares[2].of_step.ratio, 0.05, 1e-9);
}

TEST(ActivitySharesTest, OpenSamplesOfALineCountForWhatTheLineWasSeenToDo) {
  const auto shares = SharesOf({Seen(Activity::kUnknown, 1, 50), Seen(Activity::kLogging, 1, 40),
                                Seen(Activity::kPython, 1, 10), Seen(Activity::kUnknown, 2, 30)});
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].activity, Activity::kLogging);
  EXPECT_EQ(shares[0].samples, 100);
  EXPECT_EQ(shares[1].activity, Activity::kUnknown);
}

TEST(ActivitySharesTest, AStrayCallDoesNotSpeakForItsLine) {
  const auto shares = SharesOf({Seen(Activity::kUnknown, 1, 80), Seen(Activity::kLogging, 1, 20)});
  EXPECT_EQ(shares[0].activity, Activity::kUnknown);
  EXPECT_EQ(shares[0].samples, 80);
}

TEST(ActivitySharesTest, WhatStandsAroundALogIsPartOfIt) {
  const auto shares = SharesOf({Seen(Activity::kPython, 10, 20), Seen(Activity::kFile, 12, 40),
                                Seen(Activity::kLogging, 13, 30), Seen(Activity::kUnknown, 15, 10)});
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].activity, Activity::kLogging);
  EXPECT_EQ(shares[0].samples, 100);
}

TEST(ActivitySharesTest, ALogEndsWhereTheTrainingBegins) {
  record::HotLine training = Seen(Activity::kUnknown, 12, 50);
  training.share = Share::kBackward;
  const auto shares = SharesOf({Seen(Activity::kLogging, 11, 30), training, Seen(Activity::kPython, 13, 20)});
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].samples, 30);
}

TEST(ActivitySharesTest, LinesFarApartAreDifferentWork) {
  EXPECT_EQ(SharesOf({Seen(Activity::kLogging, 10, 30), Seen(Activity::kPython, 20, 20)}).size(), 2u);
}

TEST(ActivitySharesTest, ValidationAndWaitingAreNotPartOfThem) {
  record::HotLine validating = Seen(Activity::kMetrics, 5, 100), waiting = Seen(Activity::kQueue, 6, 100);
  validating.part = HostOther::kValidation;
  waiting.share = Share::kDataWait;
  const auto shares = SharesOf({validating, waiting, Seen(Activity::kLogging, 1, 10)});
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_NEAR(shares[0].of_step.ratio, 0.5, 1e-9);
}

TEST(ActivitySharesTest, RareLinesWithoutANameStillCount) {
  record::HotLine rest = Seen(Activity::kPython, 0, 50);
  rest.file.clear();
  const auto shares = SharesOf({Seen(Activity::kLogging, 1, 50), rest});
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares[1].of_step.ratio, 0.25, 1e-9);
  EXPECT_TRUE(shares[1].where.empty());
}

TEST(SampledRatioTest, NarrowsWithTheSamples) {
  const Sampled few = SampledRatio(3, 10), many = SampledRatio(300, 1000);
  EXPECT_DOUBLE_EQ(few.ratio, 0.3);
  EXPECT_NEAR(few.low, 0.108, 0.002);  // Wilson's interval, as published
  EXPECT_NEAR(few.high, 0.603, 0.002);
  EXPECT_NEAR(many.low, 0.2724, 0.001);
  EXPECT_NEAR(many.high, 0.3291, 0.001);
}

TEST(SampledRatioTest, NoSamplesSayNothing) {
  EXPECT_EQ(SampledRatio(0, 0).low, 0);
  EXPECT_EQ(SampledRatio(0, 0).high, 1);
}

}  // namespace
}  // namespace fullbore::diagnose
