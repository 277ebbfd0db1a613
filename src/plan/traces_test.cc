// The published traces of two programs, each on two devices: each is asked what the other device would take, whose own
// trace is the truth. Nothing was fitted to them.
#include <gmock/gmock.h>

#include <cmath>

#include "explain/ingest/ingest.h"
#include "explain/ingest/real_traces.h"
#include "plan/plan.h"

namespace fullbore::plan {
namespace {

class PublishedPlanTest : public ::testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {
 protected:
  void SetUp() override {
    if (!ingest::HaveRealTraces()) GTEST_SKIP() << "no traces in ../shared/traces or $FULLBORE_TRACES";
  }
  static Recorded Of(const std::string& file) {
    auto recording = ingest::ReadTraces({ingest::RealTraces() + "/" + file + "-eager.json.gz"});
    EXPECT_TRUE(recording.ok()) << ToString(recording.error());
    return RecordedOf(*recording);
  }
  static Plan Ask(const Recorded& recorded, const roofline::Device* device) {
    Request request;
    request.devices = {device};
    request.gpus = {1};
    return PlanFor({recorded}, request);
  }
};

TEST_P(PublishedPlanTest, DeviceTimeIsNearWhatTheOtherDeviceTook) {
  const auto [program, from, to] = GetParam();
  const Recorded here = Of(std::string(program) + "-" + from), there = Of(std::string(program) + "-" + to);
  const Plan plan = Ask(here, there.device), truth = Ask(there, there.device);
  ASSERT_EQ(plan.rows.size(), 1u);
  const Range& told = plan.rows[0].estimate.device_ns;
  const double true_ns = truth.rows[0].estimate.device_ns.expected;
  RecordProperty("total_off_by", std::to_string(told.expected / true_ns - 1));
  EXPECT_NEAR(told.expected / true_ns, 1, 0.2);
  EXPECT_LE(told.low, true_ns);
  EXPECT_GE(told.high, true_ns);
  constexpr double kWorthNs = 50e3;  // classes that take less say nothing
  for (const replay::ClassTime& time : plan.rows[0].estimate.classes) {
    double class_ns = 0;
    const record::StepGraph& graph = there.graphs.front();
    for (uint32_t i = graph.step_ends.front(); i < graph.step_ends.back(); ++i) {
      if (graph.nodes[i].work == record::Work::kDevice && graph.nodes[i].lane == time.lane)
        class_ns += static_cast<double>(graph.nodes[i].duration_ns);
    }
    class_ns /= static_cast<double>(graph.step_ends.size() - 1);
    if (time.now_ns < kWorthNs || class_ns < kWorthNs) continue;
    RecordProperty(std::string(record::Name(time.lane)) + "_off_by",
                   std::to_string(time.then.expected_ns / class_ns - 1));
    EXPECT_NEAR(time.then.expected_ns / class_ns, 1, 0.25) << record::Name(time.lane);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublishedPlanTest,
                         ::testing::Values(std::tuple{"vit", "h100", "mi300x"},
                                           std::tuple{"vit", "mi300x", "h100"},
                                           std::tuple{"qwen", "h100", "mi300x"},
                                           std::tuple{"qwen", "mi300x", "h100"}));

}  // namespace
}  // namespace fullbore::plan
