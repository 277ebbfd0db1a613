#include <gtest/gtest.h>

#include "explain/diagnose/testing/a_run.h"

namespace fullbore::diagnose {
namespace {

using testing::Advises;
using testing::ARun;
using testing::ATraining;
using testing::FindingIn;
using testing::Finds;
using testing::FindsCause;
using ::testing::HasSubstr;
using ::testing::Not;

// Steps of 100 ms whose backward pass takes 60, whatever the others take.
ARun WithFacts(const char* passes, const char* unused) {
  ARun run = ATraining();
  for (record::Step& step : run.rank().steps) {
    step.share_ns = {};
    step.share_ns[Index(record::Share::kForward)] = 30'000'000;
    step.share_ns[Index(record::Share::kBackward)] = 60'000'000;
    step.share_ns[Index(record::Share::kOptimizer)] = 10'000'000;
  }
  if (passes) run.rank().facts["passes"] = passes;
  if (unused) run.rank().facts["unused_gradients"] = unused;
  return run;
}

constexpr char kUnused[] =
    R"({"tensors": 18, "parameters": 183000, "used": 7000, "modules": ["Sequential"]})";
constexpr char kApartFirst[] =
    R"({"forward_ns": 300, "frozen_ns": 0, "apart_ns": 270, "apart_first_ns": 270})";
constexpr char kApartLater[] = R"({"forward_ns": 300, "frozen_ns": 0, "apart_ns": 270, "apart_first_ns": 0})";

TEST(FrozenNetworkTest, IsRaisedByGradientsThatNobodyUsesAndNamesTheirCure) {
  const Diagnosis diagnosis = Diagnose(WithFacts(kApartFirst, kUnused));
  ASSERT_THAT(diagnosis, FindsCause("frozen-network", "unused-gradients"));
  EXPECT_EQ(diagnosis.findings.front().id, "frozen-network");
  const Finding& finding = *FindingIn(diagnosis, "frozen-network");
  EXPECT_THAT(finding.title, HasSubstr("183,000 parameters that no optimizer holds (Sequential)"));
  EXPECT_THAT(finding, Advises("requires_grad_(False)"));
  EXPECT_THAT(finding, Advises("torch.no_grad()"));
  EXPECT_NEAR(finding.speedup.expected, 1 / (1 - 0.6 * 0.9 * 0.9), 1e-9);
  EXPECT_NEAR(finding.speedup.high, 1 / (1 - 0.6), 1e-9) << "the backward pass altogether";
}

TEST(FrozenNetworkTest, WhatIsTrainedBeforeItNeedsHalfOfItsBackwardPass) {
  const Diagnosis diagnosis = Diagnose(WithFacts(kApartLater, kUnused));
  const Finding& finding = *FindingIn(diagnosis, "frozen-network");
  EXPECT_THAT(finding, Not(Advises("no_grad")));
  EXPECT_NEAR(finding.speedup.expected, 1 / (1 - 0.6 * 0.9 * 0.5), 1e-9);
}

TEST(FrozenNetworkTest, WithinAModelNothingIsPromised) {
  const Diagnosis diagnosis = Diagnose(WithFacts(nullptr, kUnused));
  ASSERT_THAT(diagnosis, FindsCause("frozen-network", "unused-gradients"));
  EXPECT_EQ(FindingIn(diagnosis, "frozen-network")->speedup.high, 1);
}

TEST(FrozenNetworkTest, WithinAModelItsOperationsTellWhatOfTheBackwardPassIsInVain) {
  ARun run = WithFacts(nullptr, kUnused);
  run.rank().facts["flops"] = R"({"step": 1000, "backward": 600, "in_vain": 480, "unknown": []})";
  const Diagnosis diagnosis = Diagnose(run);
  ASSERT_THAT(diagnosis, FindsCause("frozen-network", "unused-gradients"));
  const Finding& finding = *FindingIn(diagnosis, "frozen-network");
  EXPECT_NEAR(finding.share, 0.6 * 0.8, 1e-9);
  EXPECT_NEAR(finding.speedup.expected, 1 / (1 - 0.6 * 0.8), 1e-9);
  EXPECT_GT(finding.speedup.high, finding.speedup.expected) << "nothing is kept for it either";
}

TEST(FrozenNetworkTest, IsNotRaisedByAFewParametersOfMany) {
  const char* few = R"({"tensors": 1, "parameters": 10, "used": 7000, "modules": ["Net"]})";
  EXPECT_THAT(Diagnose(WithFacts(nullptr, few)), Not(Finds("frozen-network")));
}

TEST(FrozenNetworkTest, IsNotRaisedWhereAllGradientsAreUsed) {
  EXPECT_THAT(Diagnose(WithFacts(kApartFirst, nullptr)), Not(Finds("frozen-network")));
  EXPECT_THAT(Diagnose(WithFacts(kApartFirst, "{}")), Not(Finds("frozen-network")));
}

TEST(FrozenNetworkTest, IsRaisedByATeacherWithoutAPromise) {
  const Diagnosis diagnosis = Diagnose(
      WithFacts(R"({"forward_ns": 100, "frozen_ns": 500, "apart_ns": 0, "apart_first_ns": 0})", nullptr));
  ASSERT_THAT(diagnosis, FindsCause("frozen-network", "passes"));
  const Finding& finding = *FindingIn(diagnosis, "frozen-network");
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_THAT(finding.title, HasSubstr("takes 25 % of the time"));
  EXPECT_EQ(finding.speedup.high, 1);
}

TEST(FrozenNetworkTest, IsNotRaisedByASmallTargetNetwork) {
  const char* small = R"({"forward_ns": 100, "frozen_ns": 90, "apart_ns": 0, "apart_first_ns": 0})";
  EXPECT_THAT(Diagnose(WithFacts(small, nullptr)), Not(Finds("frozen-network")));
}

}  // namespace
}  // namespace fullbore::diagnose
