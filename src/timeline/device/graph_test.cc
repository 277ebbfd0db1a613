// From recorded times to what waited for what: each test is one small scene of host and device, run again.
#include "timeline/device/graph.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace fullbore::timeline {
namespace {

using record::Dependency;
using record::StepGraph;
using record::Work;

constexpr uint16_t kMain = 0, kAutograd = 1;
constexpr uint16_t kCompute = 0, kSide = 1;

// Times in microseconds.
class Scene {
 public:
  Scene() {
    trace_.threads = {"main", "autograd"};
    trace_.streams = {"0/7", "0/14"};
  }
  Scene& Launch(int64_t call, int64_t begin, int64_t end, uint16_t stream = kCompute,
                uint16_t thread = kMain) {
    return Call(call, call + 5, CallKind::kLaunch, thread).Op(begin, end, stream);
  }
  // A launch that returns only when the queue has room again.
  Scene& LongLaunch(int64_t call, int64_t returns, int64_t begin, int64_t end) {
    return Call(call, returns, CallKind::kLaunch, kMain).Op(begin, end, kCompute);
  }
  Scene& Sync(int64_t begin, int64_t end) {
    Call(begin, end, CallKind::kSync, kMain);
    trace_.calls.back().name = trace_.names.Find("cudaStreamSynchronize");
    return *this;
  }
  // The next operation of `stream` waits for what `on_stream` has been given so far.
  Scene& StreamWait(int64_t at, uint16_t stream, uint16_t on_stream) {
    trace_.event_calls.push_back({at * 1000, ++correlation_});
    WaitRecord wait;
    wait.begin_ns = at * 1000 + 1;
    wait.event_recorded = correlation_;
    wait.stream = stream;
    wait.on_stream = on_stream;
    wait.kind = WaitKind::kStreamEvent;
    trace_.waits.push_back(wait);
    return *this;
  }
  Scene& Step(int64_t begin, int64_t end) {
    trace_.steps.push_back({begin * 1000, end * 1000, static_cast<int64_t>(trace_.steps.size()), kMain});
    return *this;
  }

  Scene& Operator(int64_t begin, int64_t end, uint8_t inner) {
    trace_.spans.push_back(
        {begin * 1000, end * 1000, trace_.names.Find("aten::linear"), kMain, SpanKind::kOp, inner});
    return *this;
  }

  StepGraph Graph() {
    trace_.Finish();
    const HostActivity host(trace_);
    return GraphOf(trace_, host, FindSteps(trace_).steps);
  }

 private:
  Scene& Call(int64_t begin, int64_t end, CallKind kind, uint16_t thread) {
    trace_.calls.push_back(
        {begin * 1000, end * 1000, ++correlation_, trace_.names.Find("call"), thread, kind});
    return *this;
  }
  Scene& Op(int64_t begin, int64_t end, uint16_t stream) {
    DeviceOp op;
    op.begin_ns = begin * 1000;
    op.end_ns = end * 1000;
    op.name = trace_.names.Find("kernel");
    op.correlation = correlation_;
    op.stream = stream;
    op.kernel = true;
    trace_.ops.push_back(op);
    return *this;
  }

  DeviceTrace trace_;
  uint32_t correlation_ = 0;
};

int64_t Count(const StepGraph& graph, Dependency kind) {
  return std::count_if(graph.edges.begin(), graph.edges.end(),
                       [&](const auto& edge) { return edge.kind == kind; });
}
int64_t UnexplainedNs(const StepGraph& graph) {
  int64_t ns = 0;
  for (const auto& node : graph.nodes) ns += node.work == Work::kUnexplained ? node.duration_ns : 0;
  return ns;
}

TEST(DeviceGraphTest, AKernelFollowsItsLaunchOrItsStream) {
  const StepGraph graph = Scene().Step(0, 100).Launch(10, 20, 60).Launch(30, 62, 100).Graph();
  EXPECT_EQ(Count(graph, Dependency::kLaunch), 2);
  EXPECT_EQ(Count(graph, Dependency::kStream),
            2);  // one into the second kernel, one into the end of the step
  EXPECT_EQ(UnexplainedNs(graph), 0);
}

TEST(DeviceGraphTest, TheHostsWorkKnowsHowManyOperatorsWereNotedInIt) {
  const StepGraph graph =
      Scene().Step(0, 100).Operator(0, 40, 7).Launch(20, 30, 40).Launch(50, 60, 100).Graph();
  std::vector<float> events;
  for (const auto& node : graph.nodes) {
    if (node.work == Work::kHost) events.push_back(node.events);
  }
  EXPECT_THAT(events, ::testing::ElementsAre(4, 3, ::testing::_))
      << "8 in 40 us: 20 us before the launch, 15 after it";
}

TEST(DeviceGraphTest, ABlockingCallReturnsAfterWhatItWaitedFor) {
  const StepGraph graph =
      Scene().Step(0, 300).Launch(10, 20, 200).Sync(30, 210).Launch(220, 230, 300).Graph();
  EXPECT_EQ(Count(graph, Dependency::kSync), 1);
}

TEST(DeviceGraphTest, ASynchronisationThatFoundNothingToWaitForIsStillOne) {
  const StepGraph graph =
      Scene().Step(0, 300).Launch(10, 20, 60).Sync(100, 104).Launch(110, 120, 300).Graph();
  EXPECT_EQ(Count(graph, Dependency::kSync), 1) << "a faster host would wait there";
  EXPECT_EQ(UnexplainedNs(graph), 0);
}

TEST(DeviceGraphTest, ACallThatWaitedForNothingKnownIsUnexplained) {
  const StepGraph graph =
      Scene().Step(0, 900).Launch(10, 20, 60).Sync(100, 800).Launch(810, 820, 900).Graph();
  EXPECT_EQ(Count(graph, Dependency::kSync), 0);
  EXPECT_EQ(UnexplainedNs(graph), 690'000);
}

TEST(DeviceGraphTest, AnOperationThatWaitedForAnotherStreamBeginsWhenThatEnds) {
  const StepGraph graph = Scene().Step(0, 700).Launch(10, 20, 500).Launch(30, 505, 700, kSide).Graph();
  EXPECT_EQ(Count(graph, Dependency::kAssumed), 1);
  EXPECT_EQ(graph.assumed, 1);
  EXPECT_EQ(UnexplainedNs(graph), 0);
}

TEST(DeviceGraphTest, ARecordedEventTakesThePlaceOfAnAssumption) {
  const StepGraph graph = Scene()
                              .Step(0, 700)
                              .Launch(10, 20, 500)
                              .StreamWait(20, kSide, kCompute)
                              .Launch(30, 520, 700, kSide)
                              .Graph();
  EXPECT_EQ(Count(graph, Dependency::kEvent), 1);
  EXPECT_EQ(graph.assumed, 0);
  EXPECT_EQ(UnexplainedNs(graph), 0);
}

TEST(DeviceGraphTest, AnOperationThatWaitedForNothingKnownIsUnexplained) {
  const StepGraph graph = Scene().Step(0, 700).Launch(10, 20, 100).Launch(30, 405, 700, kSide).Graph();
  EXPECT_EQ(graph.assumed, 0);
  EXPECT_NEAR(UnexplainedNs(graph), 365'000, 10'000);
}

TEST(DeviceGraphTest, TheTrainingThreadWaitsForTheThreadOfTheBackwardPass) {
  const StepGraph graph = Scene()
                              .Step(0, 1000)
                              .Launch(10, 20, 60)
                              .Launch(50, 70, 90, kCompute, kAutograd)
                              .Launch(500, 520, 600, kCompute, kAutograd)
                              .Launch(560, 620, 1000)
                              .Graph();
  EXPECT_EQ(Count(graph, Dependency::kHandOver), 2);  // to the backward pass, and back
}

TEST(DeviceGraphTest, AFirstStepLongerThanAllOthersDoesNotCount) {
  // What was launched before the recording began keeps the device busy until 5,000.
  Scene scene;
  scene.Step(0, 5'100).Launch(10, 5'000, 5'100);
  for (int64_t step = 0; step < 3; ++step) {
    const int64_t at = 5'100 + 100 * step;
    scene.Step(at, at + 100).Launch(at + 1, at + 10, at + 100);
  }
  EXPECT_NEAR(scene.Graph().recorded_step_ns, 100'000, 1);
}

TEST(DeviceGraphTest, ALaunchThatWaitsForRoomFollowsTheOperationThatLeavesIt) {
  Scene scene;
  scene.Launch(0, 10, 1'000).Launch(10, 1'000, 2'000).Launch(20, 2'000, 3'000).Launch(30, 3'000, 4'000);
  StepGraph graph = scene.LongLaunch(40, 1'002, 4'000, 5'000).Graph();
  const auto room = std::ranges::find(graph.nodes, Work::kRoom, &StepGraph::Node::work);
  ASSERT_NE(room, graph.nodes.end());
  const auto node = static_cast<size_t>(room - graph.nodes.begin());
  bool follows = false;
  for (uint32_t e = graph.first_edge[node]; e < graph.first_edge[node + 1]; ++e)
    follows = follows || graph.edges[e].kind == Dependency::kQueue;
  EXPECT_TRUE(follows);
}

}  // namespace
}  // namespace fullbore::timeline
