#include "tune/trial/turn_line.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace fullbore::tune {
namespace {

record::Step StepOf(int64_t wall_ms, int64_t samples) {
  record::Step step;
  step.wall_ns = wall_ms * 1'000'000;
  step.samples = samples;
  return step;
}

TEST(SliceMeterTest, WaitsForEnoughTimeAndEnoughSteps) {
  SliceMeter meter;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(meter.Take());
    meter.Add(0, StepOf(36, 9));
  }
  EXPECT_FALSE(meter.Take()) << "0.18 s";
  meter.Add(0, StepOf(36, 9));
  const auto slice = meter.Take();
  ASSERT_TRUE(slice);
  EXPECT_NEAR(slice->samples, 250, 1e-6);
  EXPECT_NEAR(slice->steps, 1 / 0.036, 1e-6);
  EXPECT_NEAR(slice->seconds, 0.216, 1e-9);
  for (int i = 0; i < 4; ++i) meter.Add(0, StepOf(1'000, 8));
  EXPECT_FALSE(meter.Take()) << "four steps";
  meter.Add(0, StepOf(1'000, 8));
  EXPECT_DOUBLE_EQ(meter.Take()->samples, 8) << "of these five alone";
}

TEST(SliceMeterTest, AddsUpRanks) {
  SliceMeter meter;
  for (int i = 0; i < 5; ++i) {
    meter.Add(0, StepOf(200, 10));
    meter.Add(1, StepOf(200, 20));
  }
  const auto slice = meter.Take();
  EXPECT_DOUBLE_EQ(slice->samples, 150);
  EXPECT_DOUBLE_EQ(slice->steps, 5);
}

TEST(SliceMeterTest, KnowsNoSamplesWhereOneStepDoesNot) {
  SliceMeter meter;
  for (int i = 0; i < 5; ++i) meter.Add(0, StepOf(200, i == 2 ? 0 : 10));
  const auto slice = meter.Take();
  EXPECT_EQ(slice->samples, 0);
  EXPECT_DOUBLE_EQ(slice->steps, 5);
}

TEST(SliceMeterTest, SaysWhatGoesOnWhileItStands) {
  SliceMeter meter;
  EXPECT_EQ(meter.waited(), 0);
  record::Step step = StepOf(100, 8);
  step.share_ns[Index(record::Share::kDataWait)] = 25'000'000;
  meter.Add(0, step);
  EXPECT_DOUBLE_EQ(meter.waited(), 0.25);
  EXPECT_FALSE(meter.uses_device());
  step.device_ns = 1;
  meter.Add(0, step);
  EXPECT_TRUE(meter.uses_device());
}

class TurnLineTest : public testing::Test {
 protected:
  TurnLineTest() {
    auto made = TurnLine::Make();
    line_.emplace(std::move(made->first));
    other_ = std::move(made->second);
  }

  void LetRun() { ASSERT_EQ(send(other_.get(), "r", 1, 0), 1); }
  std::string Word() {
    std::string text(1'000, '\0');
    const ssize_t size = recv(other_.get(), text.data(), text.size(), MSG_DONTWAIT);
    return size < 0 ? "" : text.substr(0, static_cast<size_t>(size));
  }
  void Step(int64_t wall_ms) { line_->OnStep(0, StepOf(wall_ms, 8)); }

  std::optional<TurnLine> line_;
  UniqueFd other_;
};

TEST_F(TurnLineTest, StandsOnceItIsWarmAndRunsASliceForEachWord) {
  Step(100);
  EXPECT_FALSE(line_->Stands(/*is_warm=*/false));
  EXPECT_TRUE(line_->Stands(true));
  EXPECT_EQ(Word(), "") << "it does not stand yet";
  line_->OnStood();
  EXPECT_EQ(Word(), R"({"what":"ready","waited":0.0,"uses_device":false})");
  Step(100);  // was under way
  EXPECT_TRUE(line_->Stands(true));
  LetRun();
  EXPECT_FALSE(line_->Stands(true));
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(line_->Stands(true));
    Step(100);
  }
  EXPECT_TRUE(line_->Stands(true));
  line_->OnStood();
  EXPECT_EQ(Word(), R"({"what":"slice","seconds":0.5,"steps":10.0,"samples":80.0})");
  EXPECT_TRUE(line_->Stands(true)) << "until the next word";
  EXPECT_FALSE(line_->IsOver());
}

TEST_F(TurnLineTest, IsOverWhenTheOtherEndLetsGo) {
  EXPECT_TRUE(line_->Stands(true));
  other_.reset();
  EXPECT_TRUE(line_->IsOver());
}

TEST_F(TurnLineTest, DoesNotTakeTheWordForTheEnd) {
  EXPECT_TRUE(line_->Stands(true));
  EXPECT_TRUE(line_->Stands(true));
  LetRun();
  EXPECT_FALSE(line_->IsOver());
  EXPECT_FALSE(line_->Stands(true));
}

}  // namespace
}  // namespace fullbore::tune
