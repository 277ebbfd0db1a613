// The same program on another device, and the published traces of one on two of them.
#include <gmock/gmock.h>

#include "explain/ingest/ingest.h"
#include "explain/ingest/real_traces.h"
#include "explain/replay/change/changes.h"
#include "explain/replay/predict.h"
#include "explain/replay/simulate.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::Lane;
using record::StepGraph;
using record::Work;
using testing::MadeGraph;

constexpr char kH100[] = "NVIDIA H100 SXM";
constexpr char kMi300x[] = "AMD Instinct MI300X";

// One step on an H100: an elementwise kernel of 10 ms, launched long before.
StepGraph OnAnH100() {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto launch = made.Add(Work::kLaunch, 5, {{begin}});
  const auto kernel = made.Add(Work::kDevice, 10'000, {{launch, Dependency::kLaunch, 5, true}});
  made[kernel].lane = Lane::kElementwise;
  made.Add(Work::kStepEnd, 0, {{kernel}});
  StepGraph graph = made.Graph(10'005);
  graph.device = kH100;
  return graph;
}

TEST(OtherDeviceChangeTest, ADeviceIsCalledAsItsDriverItsMakerOrItsUserCallsIt) {
  const Change* change = OtherDevice(kMi300x);
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(OtherDevice("MI300X"), change);
  EXPECT_EQ(OtherDevice("mi300x"), change);
  EXPECT_EQ(ChangeNamed("device=AMD Instinct MI300X VF"), change);
}

TEST(OtherDeviceChangeTest, AnUnknownDeviceIsNoChange) {
  EXPECT_EQ(OtherDevice("MI300"), nullptr);
  EXPECT_EQ(ChangeNamed("device="), nullptr);
  EXPECT_THAT(KnownDevices(), ::testing::HasSubstr(kMi300x));
}

TEST(OtherDeviceChangeTest, MoreBandwidthMakesAnElementwiseStepShorter) {
  const Prediction step = Predict(OnAnH100(), {OtherDevice(kMi300x)});
  EXPECT_LT(step.expected_ns, StepNs(OnAnH100()));
  EXPECT_LT(step.hopeful_ns, step.expected_ns);
  EXPECT_GT(step.cautious_ns, step.expected_ns);
}

TEST(OtherDeviceChangeTest, TheDeviceThatItWasRecordedOnIsRefusedAndChangesNothing) {
  EXPECT_NE(OtherDevice(kH100)->WhyNot(OnAnH100()), std::nullopt);
  EXPECT_EQ(Predict(OnAnH100(), {OtherDevice(kH100)}).expected_ns, StepNs(OnAnH100()));
  EXPECT_THAT(TimesByClass(OnAnH100(), *OtherDevice(kH100)), ::testing::IsEmpty());
}

TEST(OtherDeviceChangeTest, AnUnknownRecordedDeviceIsRefused) {
  StepGraph graph = OnAnH100();
  graph.device.clear();
  EXPECT_NE(OtherDevice(kMi300x)->WhyNot(graph), std::nullopt);
}

TEST(OtherDeviceChangeTest, ItIsNoAdvice) {
  for (const Change* change : AllChanges()) EXPECT_FALSE(change->shows_classes()) << change->id();
}

class PublishedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!ingest::HaveRealTraces()) GTEST_SKIP() << "no traces in ../shared/traces or $FULLBORE_TRACES";
  }

  static StepGraph GraphOf(const std::string& file) {
    auto recording = ingest::ReadTraces({ingest::RealTraces() + "/" + file + "-eager.json.gz"});
    EXPECT_TRUE(recording.ok()) << ToString(recording.error());
    return *recording->stages.front().ranks.front().graph;
  }

  // Asks the trace of one device what the program takes on the other, whose trace is the truth.
  void Ask(const std::string& recorded, const std::string& truth, const char* device) {
    constexpr double kWorthNs = 50e3;  // classes that take less say nothing
    const StepGraph other = GraphOf(truth);
    for (const ClassTime& time : TimesByClass(GraphOf(recorded), *OtherDevice(device))) {
      const double truth_ns = PerStepNs(other, [&](const StepGraph::Node& node) {
        return node.work == Work::kDevice && node.lane == time.lane;
      });
      if (time.now_ns < kWorthNs || truth_ns < kWorthNs) continue;
      ++asked_;
      close_ += std::abs(time.then.expected_ns / truth_ns - 1) <= 0.25 ? 1 : 0;
      held_ += time.then.hopeful_ns <= truth_ns && truth_ns <= time.then.cautious_ns ? 1 : 0;
    }
  }

  int asked_ = 0, close_ = 0, held_ = 0;
};

// Nothing in the table of devices was made to fit these programs (docs/measurements.md).
TEST_F(PublishedTest, AllClassesAreWithinAQuarterOfWhatTheOtherDeviceTook) {
  for (const std::string program : {"vit", "qwen"}) {
    Ask(program + "-h100", program + "-mi300x", kMi300x);
    Ask(program + "-mi300x", program + "-h100", kH100);
  }
  EXPECT_EQ(asked_, 16);
  EXPECT_EQ(close_, asked_);
  EXPECT_GE(held_, asked_ - 1);
}

}  // namespace
}  // namespace fullbore::replay
