#include "plan/link.h"

#include <gtest/gtest.h>

#include "explain/replay/testing/made_graph.h"

namespace fullbore::plan {
namespace {

using record::Dependency;
using record::Lane;
using record::StepGraph;
using record::Work;

constexpr double kGb = 1e9, kMs = 1e6;
constexpr Bandwidth kTenGb = {5 * kGb, 10 * kGb, 10 * kGb};

TEST(LinkTest, ARingSendsNearlyTwiceTheBytes) {
  EXPECT_EQ(RingPart(1), 0);
  EXPECT_EQ(RingPart(2), 1);
  EXPECT_EQ(RingPart(8), 1.75);
}

TEST(LinkTest, WhatABackwardPassDoesNotHideIsExposed) {
  // 100 MB among two devices at 10 GB/s: 10 ms.
  const replay::Prediction hidden = ExposedNs(100e6, 2, kTenGb, 50 * kMs);
  EXPECT_EQ(hidden.hopeful_ns, 0);
  EXPECT_NEAR(hidden.expected_ns, 2.62 * kMs, 0.01 * kMs) << "its last bucket of 25 MiB remains";
  EXPECT_NEAR(hidden.cautious_ns, 20 * kMs, 1);
  EXPECT_NEAR(ExposedNs(100e6, 2, kTenGb, 4 * kMs).expected_ns, 6 * kMs, 1);
}

TEST(LinkTest, ADeviceAloneExchangesNothing) { EXPECT_EQ(ExposedNs(100e6, 1, kTenGb, 0).cautious_ns, 0); }

StepGraph WithCollective() {
  replay::testing::MadeGraph made;
  const auto begin = made.Add(Work::kStepEnd, 0);
  const auto launch = made.Add(Work::kLaunch, 5, {{begin}});
  const auto collective = made.Add(Work::kDevice, 1'000, {{launch, Dependency::kLaunch, 5, true}});
  made[collective].lane = Lane::kComm;
  made[collective].wait_ns = 200'000;
  made.Add(Work::kStepEnd, 0, {{collective}});
  return made.Graph(1'005);
}

TEST(LinkTest, ACollectiveKeepsItsWaitAndTakesAsManyTimesItsOwnTime) {
  StepGraph graph = WithCollective();
  OtherLink({3, 2, 1}).Apply(replay::Outlook::kExpected, graph);
  EXPECT_EQ(graph.nodes[2].duration_ns, 200'000 + 2 * 800'000);
  OtherLink({0, 0, 0}).Apply(replay::Outlook::kExpected, graph);
  EXPECT_EQ(graph.nodes[2].duration_ns, 0) << "a device alone waits for nobody";
}

}  // namespace
}  // namespace fullbore::plan
