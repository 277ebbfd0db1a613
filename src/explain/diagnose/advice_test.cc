#include "explain/diagnose/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fullbore::diagnose {
namespace {

Finding Predicted(const std::string& id, double low, double expected, double high) {
  Finding finding;
  finding.id = id;
  finding.severity = Severity::kWarning;
  finding.share = 0.1;
  finding.title = "what was measured";
  finding.change = "DataLoader(num_workers=1)";
  finding.fix = {"DataLoader(num_workers=1): the fewest that help"};
  finding.method = "replay";
  finding.speedup = {expected, low, high};
  return finding;
}

Finding Ranked(Finding finding) {
  std::vector<Finding> findings = {std::move(finding)};
  RankByGain(findings);
  return findings.front();
}

TEST(AdviceTest, AChangeThatMaySlowTheRunDownIsNotAdvised) {
  const Finding finding = Ranked(Predicted("input-bound", 0.89, 1.2, 1.37));
  EXPECT_EQ(finding.title, "what was measured");
  EXPECT_EQ(finding.change, "");
  EXPECT_EQ(finding.method, "") << "no gain is shown";
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_THAT(finding.fix, testing::ElementsAre(testing::HasSubstr("no change is sure to gain")));
}

TEST(AdviceTest, WhatElseMightHelpTakesThePlaceOfWhatDoesNot) {
  Finding finding = Predicted("input-bound", 0.89, 1.2, 1.37);
  finding.otherwise = {"workers will not help: the cores are full"};
  EXPECT_THAT(Ranked(finding).fix, testing::ElementsAre("workers will not help: the cores are full"));
}

TEST(AdviceTest, AGainThatIsSureAndFeltIsAdvised) {
  const Finding finding = Ranked(Predicted("input-bound", 1.01, 1.05, 1.2));
  EXPECT_EQ(finding.change, "DataLoader(num_workers=1)");
  EXPECT_EQ(finding.severity, Severity::kWarning);
}

TEST(AdviceTest, AGainThatNobodyFeelsIsNoHeadline) {
  EXPECT_EQ(Ranked(Predicted("input-bound", 1.01, 1.04, 1.06)).change, "");
}

TEST(AdviceTest, ButIsShownBelowALargerOne) {
  std::vector<Finding> findings = {Predicted("copy-bound", 1.01, 1.04, 1.06),
                                   Predicted("input-bound", 1.3, 1.4, 1.5)};
  RankByGain(findings);
  EXPECT_EQ(findings[0].id, "input-bound");
  EXPECT_NE(findings[1].change, "");
}

TEST(AdviceTest, WhatIsSureToBeGainedComesFirst) {
  std::vector<Finding> findings = {Predicted("storage", 1.02, 3, 9),
                                   Predicted("launch-bound", 1.2, 1.3, 1.4)};
  RankByGain(findings);
  EXPECT_EQ(findings[0].id, "launch-bound");
}

TEST(AdviceTest, OfEqualGainsTheOneThatCostsLessComesFirst) {
  std::vector<Finding> findings = {Predicted("no-tensor-cores", 1.2, 1.3, 1.4),
                                   Predicted("launch-bound", 1.2, 1.3, 1.4)};
  findings[0].costs = replay::Cost::kNumerics;
  RankByGain(findings);
  EXPECT_EQ(findings[0].id, "launch-bound");
}

TEST(AdviceTest, WithoutAGainTheSevererFindingComesFirst) {
  Finding critical = Predicted("memory-pressure", 1, 1, 1);
  critical.method.clear();
  critical.severity = Severity::kCritical;
  std::vector<Finding> findings = {Predicted("input-bound", 0.9, 1, 1.1), critical};
  RankByGain(findings);
  EXPECT_EQ(findings[0].id, "memory-pressure");
}

}  // namespace
}  // namespace fullbore::diagnose
