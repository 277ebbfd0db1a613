// Changes of what copies: small graphs whose new length follows on paper.
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
using record::StepGraph;
using record::Work;
using testing::AfterUs;
using testing::MadeGraph;

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

}  // namespace
}  // namespace fullbore::replay
