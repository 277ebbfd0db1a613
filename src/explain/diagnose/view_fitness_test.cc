// What the fitness of a recording does to its diagnosis: src/explain/fitness tests the conditions themselves.
#include "explain/diagnose/view_fitness.h"

#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"
#include "explain/replay/testing/made_graph.h"

namespace fullbore::diagnose {
namespace {

using record::Dependency;
using record::Metric;
using record::Share;
using record::Work;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using ::testing::HasSubstr;
using testing::kMs;
using testing::LeavesOpen;
using ::testing::Not;
using ::testing::StartsWith;

// Marked steps in which the host waits for the device, with a graph that predicts a gain without those waits.
ARun WaitsForTheDevice(int64_t steps = 20) {
  ARun run = ATrace(steps).InEachStep(Share::kSync, 30);
  run.rank().noticed.steps_by = record::StepsBy::kMarks;
  replay::testing::MadeGraph made;
  auto last = made.Add(Work::kStepEnd, 0);
  auto device = last;
  for (int64_t step = 0; step < steps; ++step) {
    const auto launch = made.Add(Work::kLaunch, 0, {{last}});
    const auto kernel =
        made.Add(Work::kDevice, 60'000, {{launch, Dependency::kLaunch}, {device, Dependency::kStream}});
    const auto back = made.Add(Work::kReturn, 0, {{launch}, {kernel, Dependency::kSync}});
    const auto work = made.Add(Work::kHost, 20'000, {{back}});
    const auto again = made.Add(Work::kLaunch, 0, {{work}});
    device = made.Add(Work::kDevice, 20'000, {{again, Dependency::kLaunch}, {kernel, Dependency::kStream}});
    last = made.Add(Work::kReturn, 0, {{again}, {device, Dependency::kSync}});
    made[last].lane = record::Lane::kH2dPinned;  // not avoidable: a copy of the next batch
    made.Add(Work::kStepEnd, 0, {{device, Dependency::kStream}});
  }
  run.rank().graph = made.Graph(100'000);
  return run;
}

TEST(ViewFitnessTest, AWholeRecordingPromisesGainsAndALadder) {
  const Diagnosis diagnosis = Diagnose(WaitsForTheDevice());
  EXPECT_NE(FindingIn(diagnosis, "sync-bound")->method, "");
  EXPECT_FALSE(diagnosis.replay->ladder.empty());
  EXPECT_TRUE(diagnosis.fitness.conditions.empty());
}

TEST(ViewFitnessTest, WhatBreaksOffPromisesNoGainAndHasNoLadder) {
  ARun run = WaitsForTheDevice();
  run.rank().noticed.breaks_off_at = 4711;
  const Diagnosis diagnosis = Diagnose(run, "", {replay::ChangeNamed("no-sync")});
  EXPECT_EQ(FindingIn(diagnosis, "sync-bound")->method, "");
  EXPECT_TRUE(diagnosis.replay->ladder.empty());
  ASSERT_EQ(diagnosis.replay->refused.size(), 1U);
  EXPECT_THAT(diagnosis.replay->refused[0].second, HasSubstr("byte 4,711"));
}

TEST(ViewFitnessTest, OneStepPromisesNothingAndIsNotHealthy) {
  const Diagnosis diagnosis = Diagnose(WaitsForTheDevice(1));
  ASSERT_THAT(diagnosis, Finds("sync-bound"));
  EXPECT_EQ(FindingIn(diagnosis, "sync-bound")->method, "");
  EXPECT_TRUE(diagnosis.replay->ladder.empty());
  EXPECT_THAT(Diagnose(ATrace(1)), Not(Finds("healthy")));
}

TEST(ViewFitnessTest, LaunchesWithoutKernelsHaveNoFindings) {
  ARun run = WaitsForTheDevice();
  run.rank().noticed.launches = 546;
  run.rank().noticed.ran_nothing = 544;
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_FALSE(diagnosis.fitness.CanBeJudged());
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_TRUE(diagnosis.replay->ladder.empty());
}

TEST(ViewFitnessTest, IdleTimeIsNoFindingWhereKernelsAreMissing) {
  ARun run = WaitsForTheDevice().InEachStep(Share::kDataWait, 50);
  run.rank().noticed.launches = 500;
  run.rank().noticed.ran_nothing = 100;
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_THAT(diagnosis, Not(Finds("sync-bound")));
  ASSERT_THAT(diagnosis, Finds("input-bound")) << "the host says that it waits for data";
  EXPECT_EQ(FindingIn(diagnosis, "input-bound")->method, "");
}

TEST(ViewFitnessTest, StepsWithoutTheirKernelsAreLeftOut) {
  ARun run = ATrace(10);
  for (int64_t i = 0; i < 4; ++i) run.InStep(i, Share::kSync, 50);
  ASSERT_THAT(Diagnose(run), Finds("sync-bound"));
  const int64_t begin_ns = run.rank().steps.front().end_ns - run.rank().steps.front().wall_ns;
  run.rank().noticed.launches = 1'000;
  run.rank().noticed.ran_nothing = 400;
  run.rank().noticed.bare = {{begin_ns, run.rank().steps[3].end_ns, 400, 400}};
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_EQ(diagnosis.steps, 6);
  EXPECT_THAT(diagnosis, Not(Finds("sync-bound")));
  EXPECT_TRUE(diagnosis.fitness.CanBeJudged());
}

TEST(ViewFitnessTest, AFewStepsOfARunAreTooEarly) {
  const Diagnosis diagnosis = Diagnose(ATraining(3).InEachStep(Share::kDataWait, 100));
  EXPECT_THAT(diagnosis.fitness.Refusal(), StartsWith("Too early to judge: 3 steps"));
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_THAT(Diagnose(ATraining(30).InEachStep(Share::kDataWait, 100)), Finds("input-bound"));
}

TEST(ViewFitnessTest, WhatTheMachineShowsIsSaidHoweverEarlyItIs) {
  EXPECT_THAT(Diagnose(ATraining(3).OnGpu(Metric::kGpuMemoryUsed, 79e9).OnGpu(Metric::kGpuMemoryTotal, 80e9)),
              Finds("memory-pressure"));
}

TEST(ViewFitnessTest, WhatTheReaderNotedIsShown) {
  record::Recording recording = ATrace();
  recording.stages[0].messages = {{std::nullopt, record::Severity::kInfo, "ingest", "ranks by name"},
                                  {std::nullopt, record::Severity::kInfo, "hook", "for the run file only"}};
  EXPECT_EQ(Diagnose(recording).notes, std::vector<std::string>{"ranks by name"});
}

}  // namespace
}  // namespace fullbore::diagnose
