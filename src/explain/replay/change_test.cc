// What each change does to a step: small graphs whose new length follows on paper.
#include "explain/replay/change.h"

#include <gmock/gmock.h>

#include "explain/replay/changes.h"
#include "explain/replay/predict.h"
#include "explain/replay/simulate.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::replay {
namespace {

using record::Dependency;
using record::Lane;
using record::Phase;
using record::StepGraph;
using record::Work;
using testing::MadeGraph;

double AfterUs(const StepGraph& graph, const Change* change, Outlook outlook = Outlook::kExpected) {
  StepGraph changed = graph;
  EXPECT_EQ(change->WhyNot(graph), std::nullopt);
  const double floor_ns = change->Apply(outlook, changed);
  return std::max(floor_ns, StepNs(changed)) / 1e3;
}

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

// 64 MB in a copy of 10 ms that the host waits for, then 5 ms of computation.
StepGraph WithACopy(Lane lane) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto call = made.Add(Work::kBlockingCall, 10, {{begin}});
  const auto copy = made.Add(Work::kDevice, 10'000, {{call, Dependency::kLaunch, 5, true}});
  made[copy].lane = lane;
  made[copy].bytes = 64'000'000;
  const auto back = made.Add(Work::kReturn, 0, {{call}, {copy, Dependency::kSync, 5}});
  made[back].lane = lane;
  const auto launch = made.Add(Work::kLaunch, 5, {{back}});
  const auto kernel = made.Add(Work::kDevice, 5'000,
                               {{copy, Dependency::kStream, 1}, {launch, Dependency::kLaunch, 5, true}});
  made.Add(Work::kStepEnd, 0, {{kernel, Dependency::kStream}});
  return made.Graph();
}

TEST(PinnedMemoryTest, ACopyTakesWhatTheLinkGives) {
  EXPECT_NEAR(AfterUs(WithACopy(Lane::kH2dPageable), PinnedMemory()), 64e6 / 12 / 1e3 + 5'000, 20);
}

TEST(PinnedMemoryTest, WhereTheDeviceIsKnownItsBusSaysWhatTheLinkMayGive) {
  StepGraph graph = WithACopy(Lane::kH2dPageable);
  graph.link_bytes_per_ns = 31.5;  // PCIe 4.0
  EXPECT_NEAR(AfterUs(graph, PinnedMemory()), 64e6 / (0.8 * 31.5) / 1e3 + 5'000, 20);
}

// A batch of 64 MB that the loader gives after so long, then its copy.
StepGraph WithABatch(int64_t loader_us) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto next = made.Add(Work::kLoader, loader_us, {{begin}});
  const auto launch = made.Add(Work::kLaunch, 0, {{next}});
  const auto copy = made.Add(Work::kDevice, 20'000, {{launch, Dependency::kLaunch}});
  made[copy].lane = Lane::kH2dPageable;
  made[copy].bytes = 64'000'000;
  made.Add(Work::kStepEnd, 0, {{copy, Dependency::kStream}});
  return made.Graph();
}

TEST(PinnedMemoryTest, AnotherThreadTakesTheBatchFromAWorker) {
  const double copied_us = 64e6 / 12 / 1e3;
  EXPECT_NEAR(AfterUs(WithABatch(20'000), PinnedMemory()), 100 + copied_us, 1);
  EXPECT_NEAR(AfterUs(WithABatch(80'000), PinnedMemory()), 80'000 + copied_us, 1)
      << "the worker is what is waited for";
}

TEST(PinnedMemoryTest, WithoutWorkersTheTrainingThreadPinsTheBatch) {
  StepGraph graph = WithABatch(20'000);
  graph.loads_inline = true;
  EXPECT_NEAR(AfterUs(graph, PinnedMemory()), 20'000 + 6400 + 64e6 / 12 / 1e3, 1);
}

// The call makes the copy itself, and returns a little before the device says that it ended (torch 2.11 on an H100).
StepGraph WithACallAsLongAsItsCopy() {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto call = made.Add(Work::kLaunch, 10'002, {{begin}});
  const auto copy = made.Add(Work::kDevice, 10'000, {{call, Dependency::kLaunch, 5, true}});
  made[copy].lane = Lane::kH2dPageable;
  made[copy].bytes = 64'000'000;
  auto launch = made.Add(Work::kLaunch, 6, {{call}});
  launch = made.Add(Work::kLaunch, 6, {{launch}});
  const auto kernel =
      made.Add(Work::kDevice, 500, {{copy, Dependency::kStream, 1}, {launch, Dependency::kLaunch, 5, true}});
  made.Add(Work::kStepEnd, 0, {{kernel, Dependency::kStream}});
  return made.Graph();
}

TEST(PinnedMemoryTest, TheCallOnlyLaunches) {
  EXPECT_NEAR(AfterUs(WithACallAsLongAsItsCopy(), PinnedMemory()), 5 + 64e6 / 12 / 1e3 + 1 + 500, 1);
}

TEST(SideStreamTest, TheCallOnlyLaunchesACopyFromPinnedMemory) {
  EXPECT_NEAR(AfterUs(WithACallAsLongAsItsCopy(), SideStream()), 64e6 / 12 / 1e3, 1)
      << "no step is shorter than its copy";
}

TEST(PinnedMemoryTest, WhatIsPinnedAlreadyStaysAsItIs) {
  EXPECT_NE(PinnedMemory()->WhyNot(WithACopy(Lane::kH2dPinned)), std::nullopt);
}

TEST(SideStreamTest, ACopyHidesOnlyBehindTheWorkThatIsThere) {
  EXPECT_NEAR(AfterUs(WithACopy(Lane::kH2dPinned), SideStream()), 10'000,
              20);  // the copy is longer than the rest
}

TEST(FewerBytesTest, AQuarterOfTheBytesTakesAQuarterOfTheTime) {
  EXPECT_NEAR(AfterUs(WithACopy(Lane::kH2dPinned), FewerBytes()), 2'500 + 5'000, 30);
}

TEST(FewerBytesTest, ACallThatCopiesItselfCopiesLess) {
  EXPECT_NEAR(AfterUs(WithACallAsLongAsItsCopy(), FewerBytes()), 6 + 9'996 / 4.0 + 500, 15);
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

TEST(NoStragglerTest, CollectivesTakeNoLongerThanTheirOwnWork) {
  MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto reduce = made.Add(Work::kDevice, 1'000, {{begin}});
  made[reduce].lane = Lane::kComm;
  made.Add(Work::kStepEnd, 0, {{reduce, Dependency::kStream}});
  EXPECT_NE(NoStraggler()->WhyNot(made.Graph()), std::nullopt);
  made[reduce].wait_ns = 800'000;
  EXPECT_DOUBLE_EQ(AfterUs(made.Graph(), NoStraggler(), Outlook::kHopeful), 200);
}

// A step is collectives of so many KB, each of which takes 100 us and a us for a KB, one after the other.
StepGraph WithCollectives(std::initializer_list<int64_t> kb, int steps = 1) {
  MadeGraph made;
  auto last = made.Add(Work::kStepEnd, 0);
  for (int step = 0; step < steps; ++step) {
    for (const int64_t size : kb) {
      last = made.Add(Work::kDevice, 100 + size, {{last, Dependency::kStream}});
      made[last].lane = Lane::kComm;
      made[last].bytes = size << 10;
    }
    last = made.Add(Work::kStepEnd, 0, {{last, Dependency::kStream}});
  }
  return made.Graph();
}

TEST(FasterLinksTest, MakesOnlyTheBytesFasterAndNotTheStartOfACollective) {
  const StepGraph graph = WithCollectives({100, 300, 800});
  EXPECT_NEAR(AfterUs(graph, ChangeNamed("links=4")), 3 * 100 + 1200 / 4.0, 1);
  EXPECT_GT(AfterUs(graph, ChangeNamed("links=4"), Outlook::kCautious), 3 * 100 + 1200 / 4.0);
}

TEST(FasterLinksTest, TakesCollectivesOfOneSizeAsBoundByTheirBytes) {
  EXPECT_NEAR(AfterUs(WithCollectives({300, 300}), ChangeNamed("links=2")), 400, 1);
}

TEST(BucketsTest, SavesTheStartOfEachCollectiveButTheLast) {
  EXPECT_NEAR(AfterUs(WithCollectives({100, 300, 800}), ChangeNamed("bucket=25")), 100 + 1200, 1);
}

TEST(BucketsTest, WhereAllHaveOneSizeTheirStartIsWhatIsUsual) {
  const StepGraph graph = WithCollectives({100, 100, 100});
  const double now_us = StepNs(graph) / 1e3;
  EXPECT_NEAR(AfterUs(graph, ChangeNamed("bucket=25")), now_us - 2 * 30, 1);
  EXPECT_NEAR(AfterUs(graph, ChangeNamed("bucket=25"), Outlook::kCautious), now_us - 2 * 8, 1);
  EXPECT_NEAR(AfterUs(graph, ChangeNamed("bucket=25"), Outlook::kHopeful), now_us - 2 * 200, 1);
}

TEST(BucketsTest, TheHostLaunchesOnlyTheLastCollectiveOfABucket) {
  MadeGraph made;
  auto thread = made.Add(Work::kStepEnd, 0), stream = thread;
  for (int i = 0; i < 3; ++i) {
    const auto way = made.Add(Work::kHost, 100, {{thread, Dependency::kThread}});
    thread = made.Add(Work::kLaunch, 10, {{way, Dependency::kThread}});
    stream = made.Add(Work::kDevice, 5, {{thread, Dependency::kLaunch}, {stream, Dependency::kStream}});
    made[stream].lane = Lane::kComm;
    made[stream].bytes = 1 << 10;
  }
  made.Add(Work::kStepEnd, 0, {{thread, Dependency::kThread}, {stream, Dependency::kStream}});
  const StepGraph graph = made.Graph();
  ASSERT_DOUBLE_EQ(StepNs(graph) / 1e3, 3 * 110 + 5);
  EXPECT_DOUBLE_EQ(AfterUs(graph, ChangeNamed("bucket=25")), 3 * 100 - 2 * 20 + 10 + 5);
  EXPECT_DOUBLE_EQ(AfterUs(graph, ChangeNamed("bucket=25"), Outlook::kCautious), 3 * 100 + 10 + 5);
}

TEST(BucketsTest, ChangesNothingWhereTheyAreFull) {
  const StepGraph graph = WithCollectives({1024, 1000});
  EXPECT_DOUBLE_EQ(AfterUs(graph, ChangeNamed("bucket=1")), StepNs(graph) / 1e3);
}

// A step is a backward pass of ten kernels of 10 us, and then collectives of so many MB, a us for each.
StepGraph WithExchange(std::initializer_list<int64_t> mb, Phase pass = Phase::kBackward, int steps = 1) {
  MadeGraph made;
  auto last = made.Add(Work::kStepEnd, 0);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 10; ++i) {
      last = made.Add(Work::kDevice, 10, {{last, Dependency::kStream}});
      made[last].phase = pass;
    }
    auto order =
        Dependency::kEvent;  // the first waits for the pass, the others are behind it on their stream
    for (const int64_t size : mb) {
      last = made.Add(Work::kDevice, size, {{last, order}, {0, Dependency::kLaunch}});
      order = Dependency::kStream;
      made[last].lane = Lane::kComm;
      made[last].bytes = size << 20;
      made[last].place = 1;
    }
    const auto update = made.Add(Work::kDevice, 5, {{last, Dependency::kEvent}});
    made[update].phase = Phase::kOptimizer;
    last = made.Add(Work::kStepEnd, 0, {{update, Dependency::kStream}});
  }
  return made.Graph();
}

TEST(OverlapTest, OnlyTheLastBucketRemainsAfterTheBackwardPass) {
  EXPECT_DOUBLE_EQ(AfterUs(WithExchange({25}), Overlap(), Outlook::kHopeful), 100 + 25 + 5);
  EXPECT_DOUBLE_EQ(AfterUs(WithExchange({100}), Overlap(), Outlook::kHopeful), 30 + 100 + 5)
      << "cut into four, the first of which is there after three kernels of ten";
  EXPECT_DOUBLE_EQ(AfterUs(WithExchange({20, 20}), Overlap(), Outlook::kHopeful), 100 + 20 + 5);
}

TEST(OverlapTest, SmallCollectivesWaitUntilTheirBucketIsFull) {
  EXPECT_DOUBLE_EQ(AfterUs(WithExchange({1, 8, 8, 8}), Overlap(), Outlook::kExpected),
                   AfterUs(WithExchange({1, 24}), Overlap(), Outlook::kExpected))
      << "of 25 MB, all but the first one are there only when the pass has ended";
}

// Ten of a MB, a us each, all of which may be the start: one bucket of 1 MB and one of 9 have two starts.
TEST(OverlapTest, SmallCollectivesSaveTheirStartsInEachStep) {
  for (const int steps : {1, 2}) {
    const StepGraph graph = WithExchange({1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, Phase::kBackward, steps);
    EXPECT_NEAR(AfterUs(graph, Overlap(), Outlook::kHopeful), 100 + 9 * 0.2 + 5, 0.1) << steps;
    EXPECT_NEAR(AfterUs(graph, Overlap(), Outlook::kHopeful), AfterUs(graph, Overlap()), 10) << steps;
  }
}

TEST(OverlapTest, OfUnknownSizeEachCollectiveBeginsWithItsPartOfThePass) {
  StepGraph graph = WithExchange({10, 10, 10, 10});
  for (auto& node : graph.nodes) node.bytes = -1;
  EXPECT_DOUBLE_EQ(AfterUs(graph, Overlap(), Outlook::kHopeful), 100 + 10 + 5);
}

TEST(OverlapTest, ALongExchangeIsNotHidden) {
  EXPECT_DOUBLE_EQ(AfterUs(WithExchange({25, 400}), Overlap(), Outlook::kHopeful), 10 + 425 + 5)
      << "it begins with the first kernel of ten, as 6 % of the gradients are there";
}

TEST(OverlapTest, WithoutABackwardPassThereIsNothingToOverlap) {
  EXPECT_NE(Overlap()->WhyNot(WithExchange({25}, Phase::kForward)), std::nullopt);
}

TEST(OverlapTest, WhatOverlapsAlreadyStaysAsItIs) {
  StepGraph graph = WithExchange({25});
  std::swap(graph.nodes[10], graph.nodes[11]);
  EXPECT_NE(Overlap()->WhyNot(graph), std::nullopt);
}

TEST(AccumulationTest, ExchangesOnceInSoManySteps) {
  EXPECT_NEAR(AfterUs(WithCollectives({300, 300}, 8), ChangeNamed("accumulate=4")), 800 / 4.0, 1);
}

TEST(GradientsTest, WhatCarriesActivationsIsNotTheWrappersToChange) {
  StepGraph graph = WithCollectives({300, 300}, 8);
  for (auto& node : graph.nodes) node.of_gradients = false;
  for (const char* change : {"comm", "accumulate=4", "bucket=25"})
    EXPECT_NE(ChangeNamed(change)->WhyNot(graph), std::nullopt) << change;
  EXPECT_EQ(ChangeNamed("links=4")->WhyNot(graph), std::nullopt) << "links carry everything";
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
  EXPECT_DOUBLE_EQ(Predict(WithASync(), {NoSync()}).hopeful_ns, (1 - kOfOtherSteps) * 206'000)
      << "two kernels, one after the other, in other steps than these";
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
  const auto ladder = Ladder(graph);
  ASSERT_EQ(ladder.size(), 2U);
  EXPECT_LT(ladder[1].step.expected_ns, ladder[0].step.expected_ns);
  const record::StepGraph* const one = &graph;
  EXPECT_EQ(Ladder(Ranks(&one, 1), {"precision"})[0].change->id(), "no-sync") << "it may not begin one";
  EXPECT_TRUE(Ladder(Ranks(&one, 1), {"precision", "no-sync"}).empty());
}

}  // namespace
}  // namespace fullbore::replay
