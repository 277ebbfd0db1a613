#include <gtest/gtest.h>

#include <cmath>

#include "explain/diagnose/judge/judge.h"
#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using record::HostWork;
using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using testing::kMs;
using ::testing::Not;

// Three steps of 100 ms under the profiler.
ARun ATrainingLookedAt(const HostWork& seen, const char* optimizer = "Adam") {
  ARun run = ATraining();
  HostWork work = seen;
  work.steps = 3;
  work.stepped_ns = 300 * kMs;
  run.rank().host_work = work;
  run.rank().operators = {{"aten::mm", 30, 120 * kMs, {}}};
  run.rank().facts["optimizer"] = '"' + std::string(optimizer) + '"';
  return run;
}

HostWork ATable(double used, int64_t ms) {
  HostWork work;
  work.tables = {{200'000, 64, used, ms * kMs}};
  return work;
}

TEST(NeedlessWorkTest, IsRaisedByAGradientOfAllRowsOfATableOfWhichFewAreUsed) {
  const Diagnosis diagnosis = Diagnose(ATrainingLookedAt(ATable(384, 240)));
  ASSERT_THAT(diagnosis, FindsCause("needless-work", "dense-gradient"));
  EXPECT_THAT(diagnosis, Not(Finds("healthy")));
  const Finding& finding = *FindingIn(diagnosis, "needless-work");
  EXPECT_THAT(finding.title, HasSubstr("a table of 200,000 x 64, of which a step uses 384"));
  EXPECT_NEAR(finding.share, 0.80, 0.001);
  EXPECT_GT(finding.speedup.expected, 4.8);
  EXPECT_LE(finding.speedup.expected, 5) << "what removing it altogether gives";
  EXPECT_NEAR(finding.speedup.low, 1 / (1 - (0.80 - 0.15 / std::sqrt(3)) * (1 - 10 * 384.0 / 200'000)), 0.01)
      << "three steps tell the share of all to so much";
  EXPECT_NEAR(finding.speedup.high, 1 / (1 - (0.80 + 0.15 / std::sqrt(3))), 0.01);
  EXPECT_THAT(finding, Advises("Embedding(200000, 64, sparse=True)"));
  EXPECT_THAT(finding, Advises("SparseAdam"));
  EXPECT_EQ(finding.costs, replay::Cost::kNumerics);
}

TEST(NeedlessWorkTest, WhatTheRunWaitsBesideTheWindowIsNotGained) {
  const Diagnosis diagnosis =
      Diagnose(ATrainingLookedAt(ATable(384, 240)).InEachStep(record::Share::kDataWait, 100));
  ASSERT_THAT(diagnosis, Finds("needless-work"));
  EXPECT_NEAR(FindingIn(diagnosis, "needless-work")->share, 0.40, 0.001);
}

TEST(NeedlessWorkTest, AnOptimizerThatTakesSparseGradientsStays) {
  const Diagnosis diagnosis = Diagnose(ATrainingLookedAt(ATable(384, 240), "SGD"));
  ASSERT_THAT(diagnosis, Finds("needless-work"));
  EXPECT_THAT(*FindingIn(diagnosis, "needless-work"), Not(Advises("SparseAdam")));
}

TEST(NeedlessWorkTest, IsNotRaisedByATableThatIsMostlyTouched) {
  EXPECT_THAT(Diagnose(ATrainingLookedAt(ATable(30'000, 240))), Not(Finds("needless-work")));
}

TEST(NeedlessWorkTest, IsNotRaisedByATableThatCostsLittle) {
  const Diagnosis diagnosis = Diagnose(ATrainingLookedAt(ATable(384, 9)));
  EXPECT_THAT(diagnosis, Not(Finds("needless-work")));
  ASSERT_THAT(diagnosis, Finds("healthy"));
  EXPECT_THAT(FindingIn(diagnosis, "healthy")->title, HasSubstr("most of all aten::mm (40 % of the step)"));
}

HostWork PartsOf(const char* node, int64_t ms) {
  HostWork work;
  work.parts = {{node, 3 * 128, 262'144, ms * kMs}};
  return work;
}

TEST(NeedlessWorkTest, IsRaisedByPartsOfATensorThatAreTakenOneByOne) {
  const Diagnosis diagnosis = Diagnose(ATrainingLookedAt(PartsOf("SelectBackward0", 180)));
  ASSERT_THAT(diagnosis, FindsCause("needless-work", "part-by-part"));
  const Finding& finding = *FindingIn(diagnosis, "needless-work");
  EXPECT_THAT(finding.title, HasSubstr("128 passes"));
  EXPECT_THAT(finding, Advises("x.unbind(1)"));
  EXPECT_NEAR(finding.speedup.high, 1 / (1 - (0.60 + 0.15 / std::sqrt(3))), 0.01);
}

TEST(NeedlessWorkTest, WhatIsWrittenPartByPartIsToBeStacked) {
  const Diagnosis diagnosis = Diagnose(ATrainingLookedAt(PartsOf("torch::autograd::CopySlices", 180)));
  ASSERT_THAT(diagnosis, FindsCause("needless-work", "part-by-part"));
  EXPECT_THAT(*FindingIn(diagnosis, "needless-work"), Advises("torch.stack"));
}

TEST(NeedlessWorkTest, IsNotRaisedByPartsThatCostLittle) {
  EXPECT_THAT(Diagnose(ATrainingLookedAt(PartsOf("SelectBackward0", 12))), Not(Finds("needless-work")));
}

TEST(NeedlessWorkTest, IsRaisedByDoublePrecision) {
  HostWork work;
  work.float64_ns = 240 * kMs;
  ARun run = ATrainingLookedAt(work);
  run.rank().facts["parameter_dtype"] = "\"float64\"";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("needless-work", "double-precision"));
  const Finding& finding = *FindingIn(diagnosis, "needless-work");
  EXPECT_NEAR(finding.speedup.expected, 1 / 0.6, 0.01);
  EXPECT_THAT(finding, Advises("unless double precision is wanted"));
  EXPECT_EQ(finding.costs, replay::Cost::kNumerics);
}

TEST(NeedlessWorkTest, IsNotRaisedByDoublePrecisionOfALossAlone) {
  HostWork work;
  work.float64_ns = 30 * kMs;
  EXPECT_THAT(Diagnose(ATrainingLookedAt(work)), Not(Finds("needless-work")));
}

TEST(NeedlessWorkTest, CopiesBetweenLayoutsArePointedAtWithoutAPromise) {
  HostWork work;
  work.relaid_ns = 90 * kMs;
  work.relaid = 12;
  const Diagnosis diagnosis = Diagnose(ATrainingLookedAt(work));
  ASSERT_THAT(diagnosis, FindsCause("needless-work", "layout-copies"));
  EXPECT_TRUE(FindingIn(diagnosis, "needless-work")->method.empty());
}

// Steps of 40 ms forward, 55 backward and 5 in the optimizer.
ARun WithDenormals(const char* said) {
  ARun run = ATrainingLookedAt({});
  run.rank().facts["denormals"] = said;
  return run;
}

TEST(NeedlessWorkTest, NumbersTooSmallToBeComputedQuicklyAreFlushed) {
  const Diagnosis diagnosis = Diagnose(WithDenormals(R"({"parameters": {"ratio": 0.31, "ns": 20000000}})"));
  ASSERT_THAT(diagnosis, FindsCause("needless-work", "denormals"));
  const Finding& finding = *FindingIn(diagnosis, "needless-work");
  EXPECT_THAT(finding.title, HasSubstr("31 % of the parameters are numbers below 1.2e-38"));
  EXPECT_THAT(finding.title, HasSubstr("20 % of the step for one pass over them"));
  EXPECT_THAT(finding.title, Not(HasSubstr("at least"))) << "it is reckoned up from pieces";
  EXPECT_THAT(finding, Advises("torch.set_flush_denormal(True)"));
  EXPECT_NEAR(finding.speedup.low, 1.25, 0.001) << "one pass over them, 20 ms of 100";
  EXPECT_EQ(finding.costs, replay::Cost::kNumerics);
}

TEST(NeedlessWorkTest, ThoseOfAnOptimizersStateCostNoMoreThanTheOptimizer) {
  const Diagnosis diagnosis = Diagnose(WithDenormals(R"({"state": {"ratio": 0.5, "ns": 90000000}})"));
  ASSERT_THAT(diagnosis, FindsCause("needless-work", "denormals"));
  EXPECT_NEAR(FindingIn(diagnosis, "needless-work")->speedup.high, 1 / 0.95, 0.001);
}

TEST(NeedlessWorkTest, OfWeightsWhoseProductsAreSlowItIsSaidHowSlowAndNothingPromised) {
  const Diagnosis diagnosis =
      Diagnose(WithDenormals(R"({"parameters": {"ratio": 0.02, "ns": 100000, "product": 161}})"));
  ASSERT_THAT(diagnosis, FindsCause("needless-work", "denormals"));
  EXPECT_THAT(diagnosis, Not(Finds("healthy")));
  const Finding& finding = *FindingIn(diagnosis, "needless-work");
  EXPECT_THAT(finding.title, HasSubstr("a product of matrices with them takes 161 times as long"));
  EXPECT_TRUE(finding.method.empty());
}

TEST(NeedlessWorkTest, OfSeveralTheSeverestIsNamedAndOfEqualsTheLargestGain) {
  const char* slow = R"({"parameters": {"ratio": 0.02, "ns": 100000, "product": 161}})";
  HostWork copies;
  copies.relaid_ns = 90 * kMs;
  copies.relaid = 12;
  copies.float64_ns = 60 * kMs;
  ARun run = ATrainingLookedAt(copies);
  run.rank().facts["denormals"] = slow;
  EXPECT_THAT(Diagnose(run), FindsCause("needless-work", "denormals")) << "however much they take";
  ARun with_table = ATrainingLookedAt(ATable(384, 240));
  with_table.rank().facts["denormals"] = slow;
  EXPECT_THAT(Diagnose(with_table), FindsCause("needless-work", "dense-gradient"));
}

TEST(NeedlessWorkTest, NumbersThatThisCpuComputesAsQuicklyAreNone) {
  EXPECT_THAT(Diagnose(WithDenormals(R"({"parameters": {"ratio": 0.9, "ns": 100000}})")),
              Not(Finds("needless-work")));
  EXPECT_THAT(Diagnose(WithDenormals("[]")), Not(Finds("needless-work")));
  EXPECT_THAT(Diagnose(WithDenormals(R"({"parameters": {"ratio": "x"}, "state": 3})")),
              Not(Finds("needless-work")));
}

}  // namespace
}  // namespace fullbore::diagnose
