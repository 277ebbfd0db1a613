#include "tune/trial/turn_line.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cmath>
#include <set>

namespace fullbore::tune {
namespace {

record::Step StepOf(int64_t wall_ms, int64_t samples) {
  record::Step step;
  step.wall_ns = wall_ms * 1'000'000;
  step.samples = samples;
  return step;
}

constexpr size_t kNoMore = 0;  // steps than a slice needs

TEST(SliceMeterTest, WaitsForEnoughTimeAndEnoughSteps) {
  SliceMeter meter(kNoMore);
  meter.Add(0, StepOf(70, 9));
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(meter.Take()) << "but for the step during which it stood";
    meter.Add(0, StepOf(9, 9));
  }
  EXPECT_FALSE(meter.Take()) << "0.045 s";
  meter.Add(0, StepOf(9, 9));
  const auto slice = meter.Take();
  ASSERT_TRUE(slice);
  EXPECT_NEAR(slice->samples, 1'000, 1e-6);
  EXPECT_NEAR(slice->steps, 1 / 0.009, 1e-6);
  EXPECT_NEAR(slice->seconds, 0.054, 1e-9);
  for (int i = 0; i < 3; ++i) meter.Add(0, StepOf(1'000, 8));
  EXPECT_FALSE(meter.Take()) << "two steps that count";
  meter.Add(0, StepOf(1'000, 8));
  EXPECT_DOUBLE_EQ(meter.Take()->samples, 8) << "of these three alone";
}

TEST(SliceMeterTest, AddsUpRanks) {
  SliceMeter meter(kNoMore);
  for (int i = 0; i < 4; ++i) {
    meter.Add(0, StepOf(200, 10));
    meter.Add(1, StepOf(200, 20));
  }
  const auto slice = meter.Take();
  EXPECT_DOUBLE_EQ(slice->samples, 150);
  EXPECT_DOUBLE_EQ(slice->steps, 5);
}

TEST(SliceMeterTest, KnowsNoSamplesWhereOneStepDoesNot) {
  SliceMeter meter(kNoMore);
  for (int i = 0; i < 4; ++i) meter.Add(0, StepOf(200, i == 2 ? 0 : 10));
  const auto slice = meter.Take();
  EXPECT_EQ(slice->samples, 0);
  EXPECT_DOUBLE_EQ(slice->steps, 5);
}

// Of a program that may go on while it stands.
SliceMeter MeterWithOthers() {
  SliceMeter meter(kNoMore);
  meter.Add(0, StepOf(10'000, 1));
  meter.BeginSlices(/*leaves_out=*/true);
  return meter;
}

TEST(SliceMeterTest, LeavesOutWhatMayHaveBeenReady) {
  SliceMeter meter = MeterWithOthers();
  for (int slice = 0; slice < 2; ++slice) {
    for (int i = 0; i < 3; ++i) meter.Add(0, StepOf(110, 1'000));  // 0.33 s
    for (int i = 0; i < 8; ++i) {
      EXPECT_FALSE(meter.Take());
      meter.Add(0, StepOf(125, 10));
    }
    const auto taken = meter.Take();
    ASSERT_TRUE(taken);
    EXPECT_NEAR(taken->samples, 80, 1e-6);
    EXPECT_NEAR(taken->seconds, 1, 1e-9);
    EXPECT_NEAR(taken->burst, 1, 1e-9);
  }
}

// Of steps in which the training thread had no core for so long, and `threads` ran while it had one.
Slice SliceOf(const std::vector<int64_t>& wall_ms, const std::vector<int64_t>& without_core_ms,
              double threads, int64_t beside = 0) {
  SliceMeter meter(kNoMore);
  meter.Add(0, StepOf(100, 8));
  for (size_t i = 0; i < wall_ms.size(); ++i) {
    record::Step step = StepOf(wall_ms[i], 8);
    step.without_core_ns = without_core_ms[i] * 1'000'000;
    step.cpu_ns = static_cast<int64_t>(threads * static_cast<double>(step.wall_ns - step.without_core_ns));
    meter.Add(0, step, beside);
  }
  return *meter.Take();
}

TEST(SliceMeterTest, KnowsTheStepsThatNothingDisturbed) {
  SliceMeter meter(kNoMore);
  for (const int64_t wall_ms : {1, 50, 50, 90, 50, 160}) meter.Add(0, StepOf(wall_ms, 8));
  const auto slice = meter.Take();
  EXPECT_DOUBLE_EQ(slice->steps, 12.5);
  EXPECT_DOUBLE_EQ(slice->undisturbed, 1.6);
}

TEST(SliceMeterTest, LeavesOutTheTimeInWhichOthersHadTheCores) {
  EXPECT_DOUBLE_EQ(SliceOf({100, 150, 200, 50, 100}, {50, 100, 150, 0, 50}, 1).undisturbed, 2.4);
}

TEST(SliceMeterTest, OfMoreThreadsThanCoresTheWaitIsTheirOwn) {
  const std::vector<int64_t> wall_ms = {100, 100, 100, 100, 100}, without_core_ms = {50, 50, 50, 50, 50};
  EXPECT_DOUBLE_EQ(SliceOf(wall_ms, without_core_ms, 2.0 * UsableCores()).undisturbed, 1);
  EXPECT_DOUBLE_EQ(SliceOf(wall_ms, without_core_ms, 1, /*beside=*/UsableCores()).undisturbed, 1)
      << "workers";
}

TEST(SliceMeterTest, AThreadThatIsReadyForACoreIsNotBlocked) {
  SliceMeter meter(kNoMore);
  record::Step step = StepOf(100, 8);
  step.without_core_ns = 10'000'000;
  step.on_core_ns = step.cpu_ns = 70'000'000;
  EXPECT_DOUBLE_EQ(meter.blocked(), 1) << "nothing is known";
  for (int i = 0; i < 3; ++i) meter.Add(0, step);
  EXPECT_NEAR(meter.blocked(), 0.2, 1e-9);
  meter.Add(0, StepOf(100, 8));
  EXPECT_DOUBLE_EQ(meter.blocked(), 1) << "of one step, it is not known";
}

TEST(SliceMeterTest, WaitsForDataCountAsTheyCame) {
  SliceMeter meter(kNoMore);
  for (const int64_t wait_ms : {0, 0, 0, 40, 0, 60}) {
    record::Step step = StepOf(50 + wait_ms, 8);
    step.share_ns[Index(record::Share::kDataWait)] = wait_ms * 1'000'000;
    meter.Add(0, step);
  }
  EXPECT_DOUBLE_EQ(meter.Take()->undisturbed, 1) << "a loader that is late now and then is the program's own";
}

TEST(SliceMeterTest, WhatComesNowAndThenCountsAsItCame) {
  SliceMeter meter(kNoMore);
  for (const int64_t checkpoint_ms : {0, 0, 0, 0, 0, 100}) {
    record::Step step = StepOf(50 + checkpoint_ms, 8);
    step.host_other_ns[static_cast<size_t>(record::HostOther::kCheckpoint)] = checkpoint_ms * 1'000'000;
    meter.Add(0, step);
  }
  const auto slice = meter.Take();
  EXPECT_DOUBLE_EQ(slice->undisturbed, 1);
  EXPECT_NEAR(slice->paused, 0.1 / 0.35, 1e-9);
}

TEST(SliceMeterTest, SlicesDifferInLengthByChance) {
  SliceMeter meter(/*most_more_steps=*/2);
  std::set<int64_t> lengths;
  for (int slice = 0; slice < 50; ++slice) {
    meter.Add(0, StepOf(20, 1));
    std::optional<Slice> taken;
    for (int i = 0; i < 10 && !taken; ++i) {
      meter.Add(0, StepOf(20, 1));
      taken = meter.Take();
    }
    ASSERT_TRUE(taken);
    lengths.insert(std::llround(taken->seconds * taken->steps));
  }
  EXPECT_EQ(lengths, (std::set<int64_t>{3, 4, 5}));
}

TEST(SliceMeterTest, LeavesOutOneStepWhereTheProgramComputes) {
  SliceMeter meter(kNoMore);
  meter.Add(0, StepOf(10'000, 1));
  meter.BeginSlices(/*leaves_out=*/false);
  for (int slice = 0; slice < 2; ++slice) {
    meter.Add(0, StepOf(1, 1'000));
    for (int i = 0; i < 3; ++i) meter.Add(0, StepOf(50, 8));
    EXPECT_NEAR(meter.Take()->seconds, 0.15, 1e-9);
  }
}

TEST(SliceMeterTest, ShowsABurstThatOutlastsWhatIsLeftOut) {
  SliceMeter meter = MeterWithOthers();
  for (int i = 0; i < 30; ++i) meter.Add(0, StepOf(10, 8));
  for (int i = 0; i < 45; ++i) meter.Add(0, StepOf(10, 8));
  for (int i = 0; i < 18; ++i) meter.Add(0, StepOf(25, 8));
  EXPECT_NEAR(meter.Take()->burst, 2.5, 1e-6);
}

TEST(SliceMeterTest, SaysWhatWasWaitedForAndWhetherADeviceWasUsed) {
  SliceMeter meter(kNoMore);
  record::Step step = StepOf(100, 8);
  step.share_ns[Index(record::Share::kDataWait)] = 25'000'000;
  for (int i = 0; i < 4; ++i) meter.Add(0, step);
  EXPECT_FALSE(meter.uses_device());
  EXPECT_DOUBLE_EQ(meter.Take()->waited, 0.25);
  step.device_ns = 1;
  meter.Add(0, step);
  EXPECT_TRUE(meter.uses_device());
}

constexpr Warm kWarm = {11, 0.01, 1, 7};

class TurnLineTest : public testing::Test {
 protected:
  TurnLineTest() {
    auto made = TurnLine::Make();
    line_.emplace(std::move(made->first));
    other_ = std::move(made->second);
  }

  void LetRun(char word = kRun) { ASSERT_EQ(send(other_.get(), &word, 1, 0), 1); }
  std::string Word() {
    std::string text(1'000, '\0');
    const ssize_t size = recv(other_.get(), text.data(), text.size(), MSG_DONTWAIT);
    return size < 0 ? "" : text.substr(0, static_cast<size_t>(size));
  }
  void Step(int64_t wall_ms) { line_->OnStep(0, StepOf(wall_ms, 8)); }
  // A slice has up to two steps more than it needs.
  testing::AssertionResult EndsAfterFewMore(int64_t wall_ms) {
    for (int more = 0; more <= 2; ++more) {
      if (line_->Stands(kWarm)) return testing::AssertionSuccess();
      Step(wall_ms);
    }
    return testing::AssertionFailure() << "it still runs";
  }

  std::optional<TurnLine> line_;
  UniqueFd other_;
};

TEST_F(TurnLineTest, StandsOnceItIsWarmAndRunsASliceForEachWord) {
  Step(100);
  EXPECT_FALSE(line_->Stands(std::nullopt)) << "it is not warm";
  EXPECT_TRUE(line_->Stands(kWarm));
  EXPECT_EQ(Word(), "") << "it does not stand yet";
  line_->OnStood();
  EXPECT_EQ(
      Word(),
      R"({"what":"ready","uses_device":false,"most_steps":11.0,"waited":0.01,"blocked":1.0,"warmup_steps":7})");
  Step(100);  // was under way
  EXPECT_TRUE(line_->Stands(kWarm));
  LetRun();
  EXPECT_FALSE(line_->Stands(kWarm));
  Step(7);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(line_->Stands(kWarm));
    Step(50);
  }
  EXPECT_FALSE(line_->Stands(kWarm)) << "two steps";
  Step(50);
  EXPECT_TRUE(EndsAfterFewMore(50));
  line_->OnStood();
  const auto slice = nlohmann::json::parse(Word());
  EXPECT_EQ(slice["what"], "slice");
  EXPECT_GE(slice["seconds"].get<double>(), 0.15 - 1e-9);
  EXPECT_LE(slice["seconds"].get<double>(), 0.25 + 1e-9);
  EXPECT_NEAR(slice["steps"].get<double>(), 20, 1e-9);
  EXPECT_NEAR(slice["samples"].get<double>(), 160, 1e-9);
  EXPECT_EQ(slice["waited"], 0);
  EXPECT_NEAR(slice["burst"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(slice["undisturbed"].get<double>(), 1, 1e-9);
  EXPECT_TRUE(line_->Stands(kWarm)) << "until the next word";
  EXPECT_FALSE(line_->IsOver());
}

TEST_F(TurnLineTest, LeavesOutTheBeginningOfASliceWhereItIsToldTo) {
  EXPECT_TRUE(line_->Stands(kWarm));
  LetRun(kRunBeside);
  EXPECT_FALSE(line_->Stands(kWarm));
  Step(5'000);
  Step(5'000);
  for (int i = 0; i < 8; ++i) Step(125);
  EXPECT_TRUE(EndsAfterFewMore(125));
  line_->OnStood();
  EXPECT_NE(Word().find(R"("steps":8.0)"), std::string::npos);
}

TEST_F(TurnLineTest, IsOverWhenTheOtherEndLetsGo) {
  EXPECT_TRUE(line_->Stands(kWarm));
  other_.reset();
  EXPECT_TRUE(line_->IsOver());
}

TEST_F(TurnLineTest, DoesNotTakeTheWordForTheEnd) {
  EXPECT_TRUE(line_->Stands(kWarm));
  EXPECT_TRUE(line_->Stands(kWarm));
  LetRun();
  EXPECT_FALSE(line_->IsOver());
  EXPECT_FALSE(line_->Stands(kWarm));
}

}  // namespace
}  // namespace fullbore::tune
