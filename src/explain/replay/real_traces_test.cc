// The first law of a replay on traces of real GPUs: unchanged in, unchanged out. And what others measured
// after a change.
#include "explain/ingest/real_traces.h"

#include <gmock/gmock.h>

#include <functional>

#include "explain/ingest/ingest.h"
#include "explain/replay/change/change.h"
#include "explain/replay/predict.h"
#include "explain/replay/ranks.h"
#include "explain/replay/simulate.h"
#include "timeline/device/graph.h"

namespace fullbore::replay {
namespace {

using record::StepGraph;
using record::Work;

class RealTracesTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!ingest::HaveRealTraces()) GTEST_SKIP() << "no traces in ../shared/traces or $FULLBORE_TRACES";
  }

  static std::vector<StepGraph> Graphs(const std::string& file) {
    std::vector<StepGraph> graphs;
    const auto visited = ingest::VisitTraces(
        {ingest::RealTraces() + "/" + file}, {}, [&](timeline::DeviceTrace& trace, const std::string&) {
          const timeline::HostActivity host(trace);
          graphs.push_back(timeline::GraphOf(trace, host, timeline::FindSteps(trace).steps));
        });
    EXPECT_TRUE(visited.ok()) << ToString(visited.error());
    return graphs;
  }
};

std::string NameOfTrace(const ::testing::TestParamInfo<const char*>& of) {
  std::string name;
  for (const char* c = of.param; *c != '\0' && *c != '.'; ++c) name += *c == '-' ? '_' : *c;
  return name;
}

class LawTest : public RealTracesTest {};

TEST_P(LawTest, UnchangedInUnchangedOut) {
  const auto graphs = Graphs(GetParam());
  ASSERT_FALSE(graphs.empty());
  for (const StepGraph& graph : graphs) EXPECT_LE(ReplayError(graph), 0.01) << StepNs(graph) / 1e6 << " ms";
}

TEST_P(LawTest, LittleOfTheStepIsUnexplained) {
  for (const StepGraph& graph : Graphs(GetParam())) {
    const double ns = PerStepNs(graph, [](const auto& node) { return node.work == Work::kUnexplained; });
    EXPECT_LE(ns, 0.03 * graph.recorded_step_ns);
  }
}

// A time of day that a node kept would not move with what stands before it.
TEST_P(LawTest, NothingIsPinned) {
  for (const StepGraph& graph : Graphs(GetParam())) {
    StepGraph slower = graph;
    for (auto& node : slower.nodes) node.duration_ns *= 2;
    for (auto& edge : slower.edges) edge.lag_ns *= 2;
    EXPECT_NEAR(StepNs(slower), 2 * StepNs(graph), 1e-6 * StepNs(graph));
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, LawTest,
                         ::testing::Values("ddp-v100-rank1of2.json.gz", "ddp-v100-trace-diff-test.json.gz",
                                           "dlrm-v100-8ranks.tar.gz", "nsys-2gpu-after.sqlite",
                                           "nsys-2gpu-before.sqlite", "qwen-h100-eager.json.gz",
                                           "qwen-mi300x-eager.json.gz",
                                           "resnet50-v100-workers0.pt.trace.json.gz",
                                           "resnet50-v100-workers4.pt.trace.json.gz",
                                           "vit-h100-eager.json.gz", "vit-mi300x-eager.json.gz"),
                         NameOfTrace);

class TogetherLawTest : public RealTracesTest {};

TEST_P(TogetherLawTest, RanksRunTogetherTakeAsLongAsTheyDid) {
  const auto recording = ingest::ReadTraces({ingest::RealTraces() + "/" + GetParam()}, {});
  ASSERT_TRUE(recording.ok()) << ToString(recording.error());
  std::vector<const StepGraph*> graphs;
  for (const record::RankInfo& rank : recording->stages[0].ranks) graphs.push_back(&*rank.graph);
  ASSERT_GE(graphs.size(), 2U);
  for (const StepGraph* graph : graphs) {
    const auto ranks = RanksAround(*graph, graphs);
    EXPECT_EQ(ranks.size(), graphs.size());
    EXPECT_LE(ReplayError(ranks), 0.02);
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, TogetherLawTest,
                         ::testing::Values("dlrm-v100-8ranks.tar.gz", "nsys-2gpu-after.sqlite",
                                           "nsys-2gpu-before.sqlite"),
                         NameOfTrace);

// Its authors gave the loader four workers, and measured a median step of 126.7 ms.
TEST_F(RealTracesTest, FourWorkersBringWhatTheyBrought) {
  const auto graphs = Graphs("resnet50-v100-workers0.pt.trace.json.gz");
  ASSERT_EQ(graphs.size(), 1U);
  const Prediction step = Predict(graphs[0], {ChangeNamed("workers")});
  EXPECT_NEAR(step.expected_ns / 1e6, 126.7, 0.04 * 126.7);
  EXPECT_LE(step.hopeful_ns / 1e6, 126.7);
  EXPECT_GE(step.cautious_ns / 1e6, 126.7);
}

}  // namespace
}  // namespace fullbore::replay
