// Findings of a trace take their gains from running its graph again.
#include "explain/diagnose/device_replay.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::diagnose {
namespace {

using record::Dependency;
using record::Lane;
using record::Share;
using record::StepGraph;
using record::Work;
using replay::testing::MadeGraph;
using testing::ARun;
using testing::ATrace;
using testing::FindingIn;
using testing::kMs;

// Steps of 100 ms: the host launches 60 ms of work, waits for it, needs 20 ms to launch again, and 20 ms follow.
StepGraph WithSyncs(double recorded_ms = 100) {
  MadeGraph made;
  auto last = made.Add(Work::kStepEnd, 0);
  uint32_t device = last;
  for (int step = 0; step < 20; ++step) {
    const auto launch = made.Add(Work::kLaunch, 0, {{last}});
    const auto kernel =
        made.Add(Work::kDevice, 60'000, {{launch, Dependency::kLaunch}, {device, Dependency::kStream}});
    const auto back = made.Add(Work::kReturn, 0, {{launch}, {kernel, Dependency::kSync}});
    const auto work = made.Add(Work::kHost, 20'000, {{back}});
    const auto again = made.Add(Work::kLaunch, 0, {{work}});
    device = made.Add(Work::kDevice, 20'000, {{again, Dependency::kLaunch}, {kernel, Dependency::kStream}});
    last = made.Add(Work::kReturn, 0, {{again}, {device, Dependency::kSync}});
    made[last].lane = Lane::kH2dPinned;  // not avoidable: a copy of the next batch
    made.Add(Work::kStepEnd, 0, {{device, Dependency::kStream}});
  }
  return made.Graph(static_cast<int64_t>(recorded_ms * 1000));
}

ARun ATraceWithSyncs(double recorded_ms = 100) {
  ARun run = ATrace().InEachStep(Share::kSync, 30);
  run.rank().graph = WithSyncs(recorded_ms);
  return run;
}

TEST(DeviceReplayTest, AWaitThatHidesOtherWorkGainsOnlyWhatIsNotHiddenElsewhere) {
  const Diagnosis diagnosis = Diagnose(ATraceWithSyncs());
  const Finding& finding = *FindingIn(diagnosis, "sync-bound");
  // Without the wait the host's 20 ms run beside the kernel: 80 ms, in nine steps of ten.
  EXPECT_NEAR(finding.speedup.expected, 100.0 / (0.9 * 80 + 0.1 * 100), 0.01);
  EXPECT_LT(finding.speedup.low, finding.speedup.expected);
  EXPECT_GT(finding.speedup.high, finding.speedup.expected);
  EXPECT_NE(finding.method, "");
}

// What waits for a value also launches late: its removal gains more than the time that was spent waiting.
TEST(DeviceReplayTest, AFindingPromisesWhatTheStepsRunAgainSayWhateverItsShare) {
  ARun run = ATrace().InEachStep(Share::kSync, 10);
  run.rank().graph = WithSyncs();
  const Diagnosis diagnosis = Diagnose(run);
  const Speedup& gain = FindingIn(diagnosis, "sync-bound")->speedup;
  EXPECT_NEAR(gain.expected, 100.0 / (0.9 * 80 + 0.1 * 100), 0.01);
  EXPECT_LT(gain.low, gain.expected);
}

TEST(DeviceReplayTest, LaunchesThatTheDeviceWaitsForBecauseOfAWaitAreItsSymptom) {
  ARun run = ATrace().InEachStep(Share::kSync, 1).InEachStep(Share::kLaunch, 24);
  run.rank().graph = WithSyncs();
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_NE(FindingIn(diagnosis, "sync-bound"), nullptr);
  EXPECT_NEAR(FindingIn(diagnosis, "sync-bound")->share, 0.18, 0.01)
      << "as much as the replay without it saves";
  EXPECT_EQ(FindingIn(diagnosis, "launch-bound"), nullptr);
}

TEST(DeviceReplayTest, LaunchesThatNoWaitExplainsStayAFindingOfTheirOwn) {
  ARun run = ATrace().InEachStep(Share::kSync, 1).InEachStep(Share::kLaunch, 150);
  run.rank().graph = WithSyncs();
  EXPECT_NE(FindingIn(Diagnose(run), "launch-bound"), nullptr);
}

TEST(DeviceReplayTest, TheReportTellsTheLadder) {
  const Diagnosis diagnosis = Diagnose(ATraceWithSyncs());
  ASSERT_TRUE(diagnosis.replay.has_value());
  EXPECT_EQ(diagnosis.replay->error, 0);
  ASSERT_FALSE(diagnosis.replay->ladder.empty());
  EXPECT_EQ(diagnosis.replay->ladder[0].change, "no-sync");
}

TEST(DeviceReplayTest, AGraphThatIsFarFromWhatWasRecordedPredictsNothing) {
  const Diagnosis diagnosis = Diagnose(ATraceWithSyncs(130));
  EXPECT_FALSE(diagnosis.replay->predicts);
  EXPECT_TRUE(diagnosis.replay->ladder.empty());
  EXPECT_EQ(FindingIn(diagnosis, "sync-bound")->method, "");
}

TEST(DeviceReplayTest, WhatTheUserAskedForIsPredictedOrRefused) {
  const ARun run = ATraceWithSyncs();
  const Diagnosis diagnosis = Diagnose(run, "", {replay::ChangeNamed("no-sync"), replay::ChangeNamed("pin")});
  ASSERT_EQ(diagnosis.replay->what_if.size(), 1U);
  EXPECT_EQ(diagnosis.replay->what_if[0].change, "no-sync");
  ASSERT_EQ(diagnosis.replay->refused.size(), 1U);
  EXPECT_EQ(diagnosis.replay->refused[0].first, "pin");
}

// Two ranks whose 60 ms of work meet in a collective; each loads for 40 ms by itself in every other step, so that the
// other one waits for it.
ARun WithRanksThatLoadInTurn() {
  const auto rank_of = [](int number) {
    MadeGraph made;
    auto last = made.Add(Work::kStepEnd, 0);
    ARun run = ATrace(20);
    record::RankInfo& rank = run.rank();
    rank.rank = number;
    rank.comm_wait_ns = 0;
    for (record::Step& step : rank.steps) {
      const bool loads = step.index % 2 == number;
      const auto loaded = made.Add(Work::kLoader, loads ? 40'000 : 1000, {{last}});
      const auto launch = made.Add(Work::kLaunch, 0, {{loaded}});
      const auto kernels = made.Add(Work::kDevice, 59'000, {{launch, Dependency::kLaunch}});
      const int64_t wait_ms = loads ? 0 : 39;
      const auto reduce = made.Add(Work::kDevice, (1 + wait_ms) * 1000, {{kernels, Dependency::kStream}});
      made[reduce].meeting = static_cast<int32_t>(step.index) + 1;
      made[reduce].wait_ns = wait_ms * kMs;
      made[reduce].lane = Lane::kComm;
      last = made.Add(Work::kReturn, 0, {{launch}, {reduce, Dependency::kSync}});
      made.Add(Work::kStepEnd, 0, {{last}});
      step.wall_ns = 100 * kMs;
      step.share_ns = {};
      step.share_ns[Index(Share::kDataWait)] = (loads ? 40 : 1) * kMs;
      step.share_ns[Index(Share::kCompute)] = 59 * kMs;
      step.share_ns[Index(Share::kCommExposed)] = (1 + wait_ms) * kMs;
      step.comm_wait_ns = wait_ms * kMs;
      *rank.comm_wait_ns += step.comm_wait_ns;
    }
    rank.graph = made.Graph(100'000);
    return run;
  };
  return rank_of(0).Beside(rank_of(1));
}

TEST(DeviceReplayTest, ARankThatWaitsForAnothersLoaderWaitsForData) {
  const Diagnosis diagnosis = Diagnose(WithRanksThatLoadInTurn());
  ASSERT_FALSE(diagnosis.findings.empty());
  const Finding& first = diagnosis.findings.front();
  EXPECT_EQ(first.id, "input-bound") << first.title;
  EXPECT_NEAR(first.share, 0.4, 0.02) << "20 % by itself, 20 % in collectives";
  EXPECT_NEAR(first.speedup.expected, 100.0 / 60.1, 0.02);
  EXPECT_EQ(FindingIn(diagnosis, "uneven-ranks"), nullptr);
}

// Steps of 60 ms, of which every second one also validates: 10 ms of the host, and 70 ms of the device behind it.
ARun WithValidation() {
  ARun run = ATrace(20);
  MadeGraph made;
  auto last = made.Add(Work::kStepEnd, 0);
  for (record::Step& step : run.rank().steps) {
    const bool validates = step.index % 2 == 1;
    const auto launch = made.Add(Work::kLaunch, 0, {{last}});
    const auto kernels = made.Add(Work::kDevice, 60'000, {{launch, Dependency::kLaunch}});
    last = made.Add(Work::kReturn, 0, {{launch}, {kernels, Dependency::kSync}});
    if (validates) {
      const auto host = made.Add(Work::kValidation, 10'000, {{last}});
      const auto work = made.Add(Work::kDevice, 70'000, {{host, Dependency::kLaunch}});
      made[work].phase = record::Phase::kValidation;
      last = made.Add(Work::kReturn, 0, {{host}, {work, Dependency::kSync}});
    }
    made.Add(Work::kStepEnd, 0, {{last}});
    step.wall_ns = (validates ? 140 : 60) * kMs;
    step.share_ns = {};
    step.share_ns[Index(Share::kCompute)] = (validates ? 130 : 60) * kMs;
    step.share_ns[Index(Share::kHostOther)] = (validates ? 10 : 0) * kMs;
    step.host_other_ns[static_cast<size_t>(record::HostOther::kValidation)] = (validates ? 10 : 0) * kMs;
  }
  run.rank().graph = made.Graph(100'000);
  return run;
}

TEST(DeviceReplayTest, ValidationCostsItsWorkOnTheDeviceToo) {
  const Diagnosis diagnosis = Diagnose(WithValidation());
  const Finding* finding = FindingIn(diagnosis, "host-other");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, "validation");
  EXPECT_NEAR(finding->share, 0.9 * 0.4, 0.01) << "a tenth of it is expected to stay";
  EXPECT_THAT(finding->title, ::testing::HasSubstr("on the device"));
}

TEST(DeviceReplayTest, WithoutAGraphThereIsNoReplay) {
  EXPECT_FALSE(Diagnose(ATrace().InEachStep(Share::kSync, 20)).replay.has_value());
}

}  // namespace
}  // namespace fullbore::diagnose
