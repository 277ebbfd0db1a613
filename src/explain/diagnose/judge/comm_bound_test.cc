#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::Share;
using testing::Advises;
using testing::ARun;
using testing::ATrace;
using testing::ATraining;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::kMs;
using testing::LeavesOpen;
using ::testing::Not;

TEST(CommBoundTest, IsRaisedByRanksThatAllWait) {
  const Diagnosis diagnosis = Diagnose(ATraining()
                                           .InEachStep(Share::kCommExposed, 50)
                                           .Beside(ATraining().InEachStep(Share::kCommExposed, 50)));
  EXPECT_THAT(diagnosis, Finds("comm-bound"));
  EXPECT_THAT(diagnosis, Not(Finds("straggler")));
}

TEST(CommBoundTest, IsNotRaisedBelowATenthOfTheStep) {
  EXPECT_THAT(Diagnose(ATraining()
                           .InEachStep(Share::kCommExposed, 10)
                           .Beside(ATraining().InEachStep(Share::kCommExposed, 10))),
              Not(Finds("comm-bound")));
}

TEST(CommBoundTest, IsRaisedByTheTraceOfOneRankOfSeveral) {
  ARun run = ATrace().InEachStep(Share::kCommExposed, 30);
  run.rank().comm_ns = 3'000 * kMs;
  const Diagnosis diagnosis = Diagnose(run);
  EXPECT_THAT(diagnosis, Finds("comm-bound"));
  EXPECT_THAT(diagnosis, LeavesOpen("stragglers"));
}

TEST(CommBoundTest, GivesWayToAStragglerWhereWaitingCannotBeToldFromTransfer) {
  const Diagnosis diagnosis = Diagnose(
      ATraining().InEachStep(Share::kCommExposed, 50).Beside(ATraining().InEachStep(Share::kForward, 50)));
  EXPECT_THAT(diagnosis, Finds("straggler"));
  EXPECT_THAT(diagnosis, Not(Finds("comm-bound")));
}

// Two ranks that wait half of the time for exchanges; `exchanges` is what the hook saw of them.
Diagnosis WithExchanges(const char* exchanges) {
  ARun run = ATraining().InEachStep(Share::kCommExposed, 100);
  if (exchanges) run.rank().facts["exchanges"] = exchanges;
  return Diagnose(run.Beside(ATraining().InEachStep(Share::kCommExposed, 100)));
}

TEST(CommBoundTest, MicroBatchesThatEachExchangeAreToldToDoSoOnce) {
  const Diagnosis diagnosis =
      WithExchanges(R"({"steps": 100, "passes": 800, "exchanging": 800, "early": 700})");
  ASSERT_THAT(diagnosis, FindsCause("comm-bound", "each-micro-batch"));
  const Finding& finding = diagnosis.findings.front();
  EXPECT_THAT(finding,
              Advises("8 backward passes a step, each exchanges all gradients: put all but the last"));
  EXPECT_THAT(finding, Advises("if nothing reads or clears the gradients in between"));
  EXPECT_THAT(finding, Not(Advises("synchronise less often")));
  EXPECT_NEAR(finding.speedup.low, 1 / (1 - 0.5 * 0.875 * 0.6), 1e-9);
  EXPECT_NEAR(finding.speedup.high, 1 / (1 - 0.5 * 0.875 - 0.3 * 0.275 * 0.875), 1e-9)
      << "seven of eight exchanges";
  EXPECT_EQ(finding.costs, replay::Cost::kCode) << "the sum of the gradients stays the same";
}

TEST(CommBoundTest, WhatIsShardedGathersItsWeightsForEachMicroBatchAllTheSame) {
  ARun run = ATraining().InEachStep(Share::kCommExposed, 100);
  run.rank().device = "cpu";
  run.rank().facts["distributed"] = "\"fully_shard\"";
  run.rank().facts["exchanges"] =
      R"({"steps": 100, "passes": 800, "exchanging": 800, "early": 700, "collectives_ns": 1000, "reducing_ns": 400})";
  const Diagnosis diagnosis = Diagnose(run.Beside(ATraining().InEachStep(Share::kCommExposed, 100)));
  ASSERT_THAT(diagnosis, FindsCause("comm-bound", "each-micro-batch"));
  const Finding& finding = diagnosis.findings.front();
  EXPECT_THAT(finding.fix.front(), HasSubstr("model.set_requires_gradient_sync(False)"));
  EXPECT_THAT(finding, Advises("set_modules_to_forward_prefetch")) << "the gathers stay";
  EXPECT_NEAR(finding.speedup.low, 1 / (1 - 0.5 * 0.875 * 0.4 * 0.6), 1e-9);
}

TEST(CommBoundTest, WhereAccumulationIsNotSeenTheWordsStayGeneral) {
  for (
      const char* exchanges :
      {R"({"steps": 100, "passes": 100, "exchanging": 100, "early": 0})",  // one pass a step
       R"({"steps": 100, "passes": 800, "exchanging": 100, "early": 0})",  // under no_sync() already
       R"({"steps": 100, "passes": 200, "exchanging": 200, "early": 0})",  // two networks, each with its step
       R"({"steps": 0, "passes": 9, "exchanging": 9, "early": 9})", "[]",
       static_cast<const char*>(nullptr)}) {
    const Diagnosis diagnosis = WithExchanges(exchanges);
    ASSERT_THAT(diagnosis, FindsCause("comm-bound", ""));
    EXPECT_THAT(diagnosis.findings.front(), Advises("synchronise less often: gradient accumulation"));
  }
}

// Two ranks of which each waits `ms` a step for the other stage.
Diagnosis OfStages(int64_t bubble_ms) {
  record::Recording run =
      ATraining().InEachStep(Share::kCommExposed, 50).Beside(ATraining().InEachStep(Share::kCommExposed, 50));
  for (record::RankInfo& rank : run.stages.front().ranks) {
    const auto steps = static_cast<int64_t>(rank.steps.size());
    rank.comm_wait_ns = 0;
    for (record::Step& step : rank.steps) step.comm_wait_ns = 0;
    rank.noticed.bubble_ns = steps * bubble_ms * kMs;
    rank.noticed.transfer_ns = steps * (50 - bubble_ms) * kMs;
  }
  return Diagnose(run);
}

TEST(CommBoundTest, WaitingForAnotherStageIsTheBubbleOfThePipelineAndNoStraggler) {
  const Diagnosis diagnosis = OfStages(48);
  EXPECT_THAT(diagnosis, Not(Finds("straggler")));
  ASSERT_THAT(diagnosis, Finds("comm-bound"));
  EXPECT_EQ(diagnosis.findings[0].cause, "pipeline-bubble");
  EXPECT_EQ(diagnosis.findings[0].title.find("no_sync"), std::string::npos);
  EXPECT_TRUE(diagnosis.findings[0].method.empty());
}

TEST(CommBoundTest, StagesThatHardlyWaitHaveNoBubble) {
  const Diagnosis diagnosis = OfStages(5);
  ASSERT_THAT(diagnosis, Finds("comm-bound"));
  EXPECT_NE(diagnosis.findings[0].cause, "pipeline-bubble");
}

// A process whose device works half of the time, and whose other ones work `together_ms` of a step beside it.
Diagnosis OfDevices(size_t devices, int64_t together_ms) {
  ARun run = ATrace().InEachStep(Share::kCommExposed, 100);
  record::Noticed& noticed = run.rank().noticed;
  const auto steps = static_cast<int64_t>(run.rank().steps.size());
  noticed.span_ns = steps * 200 * kMs;
  noticed.each_busy_ns.assign(devices, steps * 100 * kMs);
  noticed.together_ns = steps * together_ms * kMs;
  return Diagnose(run);
}

TEST(CommBoundTest, DevicesOfOneProcessThatWorkInTurnAreSaidToDoSo) {
  const Diagnosis diagnosis = OfDevices(2, 0);
  ASSERT_THAT(diagnosis, Finds("comm-bound"));
  EXPECT_EQ(diagnosis.findings[0].cause, "devices-of-one-process");
  EXPECT_NE(diagnosis.findings[0].title.find("one after the other"), std::string::npos);
  EXPECT_EQ(OfDevices(2, 60).findings[0].title.find("one after the other"), std::string::npos);
}

TEST(CommBoundTest, OneDeviceThatRunsNoCollectiveHasNoneToWaitFor) {
  EXPECT_THAT(OfDevices(1, 0), Not(Finds("comm-bound")));
}

}  // namespace
}  // namespace fullbore::diagnose
