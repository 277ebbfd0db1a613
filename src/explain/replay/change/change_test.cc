// What each change does to a step: small graphs whose new length follows on paper.
#include "explain/replay/change/change.h"

#include <gmock/gmock.h>

#include "explain/replay/change/changes.h"
#include "explain/replay/predict.h"
#include "explain/replay/simulate.h"
#include "explain/replay/testing/after.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::Lane;
using record::Phase;
using record::StepGraph;
using record::Work;
using testing::AfterUs;
using testing::MadeGraph;

// One step: the host launches a kernel of 100 us, waits for it, computes 60 us and launches another of 100
// us.
StepGraph WithASync(Lane copied = Lane::kOtherCompute) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto launch = made.Add(Work::kLaunch, 5, {{begin}});
  const auto kernel = made.Add(Work::kDevice, 100, {{launch, Dependency::kLaunch, 5, true}});
  const auto call = made.Add(Work::kBlockingCall, 2, {{launch}});
  const auto back = made.Add(Work::kReturn, 0, {{call}, {kernel, Dependency::kSync, 5}});
  made[back].lane = copied;
  const auto work = made.Add(Work::kHost, 60, {{back}});
  const auto again = made.Add(Work::kLaunch, 5, {{work}});
  const auto second =
      made.Add(Work::kDevice, 100, {{kernel, Dependency::kStream, 1}, {again, Dependency::kLaunch, 5, true}});
  made.Add(Work::kStepEnd, 0, {{second}});
  return made.Graph(275);
}

TEST(NoSyncTest, TheHostRunsAheadOfTheDevice) {
  EXPECT_DOUBLE_EQ(StepNs(WithASync()) / 1e3, 275);
  EXPECT_DOUBLE_EQ(AfterUs(WithASync(), NoSync()), 206);  // two kernels, one after the other
}

TEST(NoSyncTest, AValueThatIsNotReadTakesNoTimeOfTheHostEither) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  auto host = begin;
  for (int i = 0; i < 10; ++i) {
    const auto work = made.Add(Work::kHost, 30, {{host}});
    const auto call = made.Add(Work::kBlockingCall, 5, {{work}});
    const auto copy = made.Add(Work::kDevice, 2, {{call, Dependency::kLaunch, 5, true}});
    made[copy].lane = Lane::kD2hPageable;
    made[copy].bytes = 4;
    host = made.Add(Work::kReturn, 0, {{call}, {copy, Dependency::kSync, 5}});
    made[host].lane = Lane::kD2hPageable;
  }
  const auto launch = made.Add(Work::kLaunch, 5, {{host}});
  made.Add(Work::kStepEnd, 0, {{launch}});
  EXPECT_DOUBLE_EQ(StepNs(made.Graph()) / 1e3, 10 * (30 + 5 + 2 + 5) + 5);
  EXPECT_DOUBLE_EQ(AfterUs(made.Graph(), NoSync()), 10 * (30 - 8) + 5);
}

TEST(NoSyncTest, AWaitForACopyToTheDeviceIsNotItsMatter) {
  EXPECT_NE(NoSync()->WhyNot(WithASync(Lane::kH2dPageable)), std::nullopt);
}

StepGraph OfTheAllocator(StepGraph graph) {
  for (auto& node : graph.nodes)
    node.of_allocator = node.work == Work::kReturn || node.work == Work::kBlockingCall;
  return graph;
}

TEST(NoSyncTest, AWaitOfTheAllocatorIsNotItsMatter) {
  EXPECT_NE(NoSync()->WhyNot(OfTheAllocator(WithASync())), std::nullopt);
}

TEST(KeptMemoryTest, CallsThatTakeAndFreeMemoryGoWithTheirWaits) {
  EXPECT_DOUBLE_EQ(AfterUs(OfTheAllocator(WithASync()), KeptMemory()), 206);
  EXPECT_NE(KeptMemory()->WhyNot(WithASync()), std::nullopt) << "a wait for a value is none of them";
}

TEST(NoSyncTest, AWaitAtTheVeryEndKeepsNobodyWaiting) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto launch = made.Add(Work::kLaunch, 5, {{begin}});
  const auto kernel = made.Add(Work::kDevice, 100, {{launch, Dependency::kLaunch, 5, true}});
  const auto back = made.Add(Work::kReturn, 0, {{launch}, {kernel, Dependency::kSync}});
  made.Add(Work::kStepEnd, 0, {{back}});
  EXPECT_NE(NoSync()->WhyNot(made.Graph()), std::nullopt);
}

// A step of `launches` kernels of 2 us, each 30 us of Python after the one before.
StepGraph WithSmallKernels(int launches, bool sync) {
  MadeGraph made;
  auto host = made.Add(Work::kStepEnd, 0);
  uint32_t kernel = 0;
  for (int i = 0; i < launches; ++i) {
    const auto work = made.Add(Work::kHost, 25, {{host}});
    const auto launch = made.Add(Work::kLaunch, 5, {{work}});
    kernel = i == 0 ? made.Add(Work::kDevice, 2, {{launch, Dependency::kLaunch, 6, true}})
                    : made.Add(Work::kDevice, 2,
                               {{kernel, Dependency::kStream, 1}, {launch, Dependency::kLaunch, 6, true}});
    host = launch;
    if (sync && i == 1) {
      const auto call = made.Add(Work::kBlockingCall, 1, {{launch}});
      host = made.Add(Work::kReturn, 0, {{call}, {kernel, Dependency::kSync, 1}});
    }
  }
  made.Add(Work::kStepEnd, 0, {{kernel, Dependency::kStream}, {host}});
  return made.Graph();
}

// Forward 100 us; backward, what was computed again before it 100 us, and 200 us of its own.
StepGraph WithRecomputation() {
  MadeGraph made;
  auto host = made.Add(Work::kStepEnd, 0);
  auto device = host;
  for (const auto& [phase, us] :
       {std::pair(Phase::kForward, 100), {Phase::kRecomputation, 100}, {Phase::kBackward, 200}}) {
    host = made.Add(Work::kLaunch, 5, {{host}});
    made[host].phase = phase;
    device =
        made.Add(Work::kDevice, us, {{device, Dependency::kStream, 1}, {host, Dependency::kLaunch, 5, true}});
    made[device].phase = phase;
  }
  made.Add(Work::kStepEnd, 0, {{device}});
  return made.Graph(407);
}

TEST(NoRecomputationTest, TheBackwardPassBeginsWithItsOwnWork) {
  EXPECT_DOUBLE_EQ(StepNs(WithRecomputation()) / 1e3, 407);
  EXPECT_DOUBLE_EQ(AfterUs(WithRecomputation(), NoRecomputation()), 306);
  EXPECT_NEAR(AfterUs(WithRecomputation(), NoRecomputation(), Outlook::kCautious), 316, 1)
      << "a tenth is left";
}

TEST(NoRecomputationTest, NeedsSomethingThatIsComputedAgain) {
  EXPECT_TRUE(NoRecomputation()->WhyNot(WithASync()).has_value());
}

TEST(CudaGraphsTest, OneLaunchTakesThePlaceOfAll) {
  const StepGraph graph = WithSmallKernels(100, false);
  EXPECT_NEAR(StepNs(graph) / 1e3, 100 * 30, 10);
  // 25 us to the first launch, 10 us for it and 0.3 us for each of the others, then 2 us each and 1 us
  // between them.
  EXPECT_NEAR(AfterUs(graph, CudaGraphs()), 25 + 10 + 30 + 100 * 3, 5);
}

TEST(CudaGraphsTest, AGraphCannotContainAWait) {
  EXPECT_NE(CudaGraphs()->WhyNot(WithSmallKernels(100, true)), std::nullopt);
}

TEST(FusedOptimizerTest, ItsManyLaunchesBecomeFew) {
  StepGraph graph = WithSmallKernels(100, false);
  EXPECT_NE(FusedOptimizer()->WhyNot(graph), std::nullopt);
  for (auto& node : graph.nodes) node.phase = Phase::kOptimizer;
  EXPECT_LT(AfterUs(graph, FusedOptimizer()), StepNs(graph) / 1e3 / 9);
}

TEST(FusedOptimizerTest, AnOptimizerWithoutAFusedFormIsRefused) {
  StepGraph graph = WithSmallKernels(100, false);
  for (auto& node : graph.nodes) node.phase = Phase::kOptimizer;
  for (const char* fused : {"", "SGD", "Adam", "AdamW"}) {
    graph.optimizer = fused;
    EXPECT_EQ(FusedOptimizer()->WhyNot(graph), std::nullopt) << fused;
  }
  for (const char* other : {"RMSprop", "Lion", "Adagrad"}) {
    graph.optimizer = other;
    EXPECT_NE(FusedOptimizer()->WhyNot(graph), std::nullopt) << other;
  }
}

TEST(FusedOptimizerTest, TheGapsBetweenItsKernelsGoWithThem) {
  MadeGraph made;
  auto last = made.Add(Work::kStepEnd, 0);
  for (int i = 0; i < 100; ++i) {
    const auto launch = made.Add(Work::kLaunch, 0, {{last, Dependency::kStart, 0, true}});
    last = made.Add(Work::kDevice, 2, {{launch, Dependency::kLaunch}, {last, Dependency::kStream, 3}});
    made[launch].phase = made[last].phase = Phase::kOptimizer;
  }
  made.Add(Work::kStepEnd, 0, {{last, Dependency::kStream}});
  EXPECT_NEAR(AfterUs(made.Graph(), FusedOptimizer()), 30, 1) << "ten kernels' gaps, and no bytes";
}

TEST(WorkersTest, OnlyTheHandOverIsLeftOfTheWaitForABatch) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto next = made.Add(Work::kLoader, 60'000, {{begin}});
  const auto rest = made.Add(Work::kHost, 40'000, {{next}});
  made.Add(Work::kStepEnd, 0, {{rest}});
  EXPECT_DOUBLE_EQ(AfterUs(made.Graph(), Workers()), 40'100);
}

TEST(WorkersTest, ABatchThatIsNotPinnedIsMappedAndUnmapped) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto next = made.Add(Work::kLoader, 60'000, {{begin}});
  const auto launch = made.Add(Work::kLaunch, 0, {{next}});
  const auto copy = made.Add(Work::kDevice, 1000, {{launch, Dependency::kLaunch}});
  made[copy].lane = Lane::kH2dPageable;
  made[copy].bytes = 10'000'000;
  made.Add(Work::kStepEnd, 0, {{copy, Dependency::kStream}});
  EXPECT_DOUBLE_EQ(AfterUs(made.Graph(), Workers()), 1500 + 0.32 * 10'000 + 1000);
}

TEST(WorkersTest, SoManyWorkersLoadNoFasterThanTheyCan) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto next = made.Add(Work::kLoader, 60'000, {{begin}});
  const auto rest = made.Add(Work::kHost, 10'000, {{next}});
  made.Add(Work::kStepEnd, 0, {{rest}});
  StepGraph graph = made.Graph();
  graph.loads_inline = true;
  EXPECT_DOUBLE_EQ(AfterUs(graph, ChangeNamed("workers=2")), 30'000);
  EXPECT_DOUBLE_EQ(AfterUs(graph, ChangeNamed("workers=20")), 10'100);
  EXPECT_EQ(ChangeNamed("workers=0"), nullptr);
  EXPECT_EQ(ChangeNamed("workers=many"), nullptr);
}

TEST(NoValidationTest, TakesItsWorkOnTheDeviceAway) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto step = made.Add(Work::kDevice, 100, {{begin}});
  const auto host = made.Add(Work::kValidation, 50, {{step}});
  const auto kernel = made.Add(Work::kDevice, 400, {{host, Dependency::kLaunch}});
  made[kernel].phase = Phase::kValidation;
  made.Add(Work::kStepEnd, 0, {{kernel, Dependency::kStream}});
  EXPECT_DOUBLE_EQ(AfterUs(made.Graph(), NoValidation(), Outlook::kHopeful), 100);
}

TEST(CudaGraphsTest, TheOptimizersLaunchesStayOnTheHost) {
  StepGraph graph = WithSmallKernels(100, false);
  const double captured = AfterUs(graph, CudaGraphs());
  for (auto& node : graph.nodes) node.phase = Phase::kOptimizer;
  EXPECT_NE(CudaGraphs()->WhyNot(graph), std::nullopt);
  EXPECT_LT(captured, StepNs(graph) / 1e3);
}

TEST(CompileTest, AChainOfElementwiseKernelsBecomesShorter) {
  StepGraph graph = WithSmallKernels(3, false);
  EXPECT_NE(Compile()->WhyNot(graph), std::nullopt);
  for (auto& node : graph.nodes) {
    if (node.work == Work::kDevice) node.lane = Lane::kElementwise;
  }
  EXPECT_LT(AfterUs(graph, Compile()), StepNs(graph) / 1e3);
}

TEST(CompileTest, AProgramThatIsCompiledIsNotCompiledAgain) {
  StepGraph graph = WithSmallKernels(3, false);
  for (auto& node : graph.nodes) {
    if (node.work == Work::kDevice) node.lane = Lane::kElementwise;
  }
  graph.compiled = true;
  EXPECT_NE(Compile()->WhyNot(graph), std::nullopt);
}

TEST(LowerPrecisionTest, OnADeviceWithoutTensorCoresOrAnUnknownOneNothingIsPredicted) {
  StepGraph graph = WithASync();
  for (auto& node : graph.nodes) {
    if (node.work == Work::kDevice) node.lane = Lane::kMatmul;
  }
  for (const auto units : {record::MatrixUnits::kNone, record::MatrixUnits::kUnknown}) {
    graph.matrix_units = units;
    EXPECT_NE(LowerPrecision()->WhyNot(graph), std::nullopt);
  }
  graph.matrix_units = record::MatrixUnits::kFloat16;
  EXPECT_EQ(LowerPrecision()->WhyNot(graph), std::nullopt);
}

// A hundred products, which the host launches more slowly than the device makes them.
StepGraph WithProducts(Lane lane, const std::string& kernel) {
  MadeGraph made;
  auto last = made.Add(Work::kStepEnd, 0);
  for (int i = 0; i < 100; ++i) {
    const auto host = made.Add(Work::kHost, 25, {{last}});
    last = made.Add(Work::kLaunch, 5, {{host}});
    const auto product = made.Add(Work::kDevice, 2, {{last, Dependency::kLaunch, 5, true}});
    made[product].lane = lane;
  }
  made.Add(Work::kStepEnd, 0, {{last}});
  StepGraph graph = made.Graph(3'000);
  graph.matrix_units = record::MatrixUnits::kBFloat16;
  graph.names = {kernel};
  return graph;
}

TEST(LowerPrecisionTest, CastsMayCostAHostThatIsWaitedForMoreThanTensorCoresGain) {
  const auto slowest = [](const StepGraph& graph) {
    StepGraph changed = graph;
    LowerPrecision()->Apply(Outlook::kCautious, changed);
    return StepNs(changed) / StepNs(graph);
  };
  EXPECT_NEAR(slowest(WithProducts(Lane::kMatmul, "sgemm")), 1 + 4 / 3.0, 0.01);
  EXPECT_NEAR(slowest(WithProducts(Lane::kMatmulTensor, "cutlass_tensorop_s1688gemm")), 1 + 4 / 3.0, 0.01)
      << "of TF32";
  EXPECT_NEAR(slowest(WithProducts(Lane::kMatmulTensor, "bf16_s16816gemm")), 1, 0.01) << "16 bit already";
  EXPECT_NEAR(slowest(WithProducts(Lane::kMatmulTensor, "turing_fp16_s1688gemm_fp16_128x64_nn")), 1, 0.01);
  EXPECT_NEAR(AfterUs(WithProducts(Lane::kMatmul, "sgemm"), LowerPrecision()), 3'000, 1)
      << "TF32 casts nothing";
}

TEST(LowerPrecisionTest, OnlyProductsWithoutTensorCoresGain) {
  StepGraph graph = WithASync();
  graph.matrix_units = record::MatrixUnits::kBFloat16;
  EXPECT_NE(LowerPrecision()->WhyNot(graph), std::nullopt);
  for (auto& node : graph.nodes) {
    if (node.work == Work::kDevice) node.lane = Lane::kMatmul;
  }
  EXPECT_NEAR(AfterUs(graph, LowerPrecision()), 275 - 200 * 0.6, 1);
}

TEST(ChangeTest, EveryChangeIsFoundByItsName) {
  for (const Change* change : AllChanges()) EXPECT_EQ(ChangeNamed(change->id()), change);
  for (const char* numbered : {"workers=4", "links=4", "accumulate=8", "bucket=25"}) {
    ASSERT_NE(ChangeNamed(numbered), nullptr);
    EXPECT_EQ(ChangeNamed(numbered)->id(), numbered);
  }
  for (const char* wrong : {"no-such-thing", "links=", "links=0", "links=-1", "bucket=99999999999"})
    EXPECT_EQ(ChangeNamed(wrong), nullptr) << wrong;
}

TEST(PredictTest, TheRangeHoldsTheExpectedStep) {
  const Prediction step = Predict(WithASync(), {NoSync()});
  EXPECT_LE(step.hopeful_ns, step.expected_ns);
  EXPECT_GT(step.cautious_ns, step.expected_ns);
}

TEST(PredictTest, NoRangeGoesBeyondTheRemovalOfWhatTheChangeIsAbout) {
  EXPECT_DOUBLE_EQ(Predict(WithASync(), {NoSync()}).hopeful_ns, (1 - kBeyondRemoval) * 206'000)
      << "two kernels, one after the other";
}

TEST(PredictTest, AChangeThatCannotBeMadeChangesNothing) {
  const Prediction step = Predict(WithASync(), {PinnedMemory()});
  EXPECT_DOUBLE_EQ(step.expected_ns, 275'000);
  EXPECT_DOUBLE_EQ(Predict(WithASync(), {}).hopeful_ns, 275'000) << "nor does none";
}

TEST(LadderTest, EachRungIsBelowTheOneBefore) {
  StepGraph graph = WithASync();
  for (auto& node : graph.nodes) {
    if (node.work == Work::kDevice) node.lane = Lane::kMatmul;
  }
  graph.matrix_units = record::MatrixUnits::kBFloat16;
  graph.left_on_tensor_cores = {0.3, 0.25, 0.2};
  const auto ladder = Ladder(graph);
  ASSERT_EQ(ladder.size(), 2U);
  EXPECT_LT(ladder[1].step.expected_ns, ladder[0].step.expected_ns);
  const record::StepGraph* const one = &graph;
  EXPECT_EQ(Ladder(Ranks(&one, 1), {"precision"})[0].change->id(), "no-sync") << "it may not begin one";
  EXPECT_TRUE(Ladder(Ranks(&one, 1), {"precision", "no-sync"}).empty());
}

}  // namespace
}  // namespace fullbore::replay
