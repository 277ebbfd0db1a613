#include "explain/diagnose/quotes.h"

#include <gmock/gmock.h>

#include "explain/diagnose/advice.h"

namespace fullbore::diagnose {
namespace {

Finding Quoting(const char* change, double share, Speedup gain) {
  Finding finding;
  finding.quotes = change;
  finding.share = share;
  finding.speedup = finding.quoted = gain;
  finding.method = "predicted";
  return finding;
}

Rung RungOf(const char* change, double step_ns, Speedup gain) {
  Rung rung;
  rung.change = change;
  rung.step_ns = step_ns;
  rung.speedup = gain;
  return rung;
}

TEST(QuotesTest, OfTwoFindingsThatQuoteAChangeOnlyTheDearerPromisesItsGain) {
  std::vector<Finding> findings = {Quoting("compile", 0.1, {1.11, 1.1, 1.11}),
                                   Quoting("compile", 0.4, {1.3, 1.2, 1.4}),
                                   Quoting("no-sync", 0.05, {1.05, 1.04, 1.05})};
  KeepOneGainOfEach(findings);
  EXPECT_EQ(findings[0].method, "");
  EXPECT_NE(findings[1].method, "");
  EXPECT_NE(findings[2].method, "");
  EXPECT_TRUE(TakenBack(findings).empty()) << "it is promised, by another finding";
}

TEST(QuotesTest, TheFirstRungTakesTheNumberOfTheFindingAndTheOthersGoOnFromThere) {
  const std::vector<Finding> findings = {Quoting("no-sync", 0.2, {1.25, 1.2, 1.25})};
  std::vector<Rung> rungs = {RungOf("no-sync", 50, {2, 1.5, 4}), RungOf("compile", 40, {2.5, 2, 5})};
  QuoteFindings(findings, rungs);
  EXPECT_DOUBLE_EQ(rungs[0].step_ns, 80);
  EXPECT_DOUBLE_EQ(rungs[0].speedup.expected, 1.25);
  EXPECT_DOUBLE_EQ(rungs[0].speedup.high, 1.25);
  EXPECT_DOUBLE_EQ(rungs[1].step_ns, 64);
  EXPECT_DOUBLE_EQ(rungs[1].speedup.expected, 2.5 / 1.6);
}

TEST(QuotesTest, RungsThatNoFindingQuotesStayAsTheyAre) {
  std::vector<Rung> rungs = {RungOf("pin", 50, {2, 1.5, 4})};
  QuoteFindings({Quoting("no-sync", 0.2, {1.25, 1.2, 1.25})}, rungs);
  EXPECT_DOUBLE_EQ(rungs[0].step_ns, 50);
}

TEST(QuotesTest, WhatAFindingTookBackIsNoRungButStillAnswersAUser) {
  Finding finding = Quoting("no-sync", 0.04, {1.04, 1.01, 1.04});
  DropGain(finding);
  EXPECT_THAT(TakenBack({finding}), ::testing::ElementsAre("no-sync"));
  Finding unsure = Quoting("precision", 0.3, {1.1, 0.98, 1.3});
  DropGain(unsure);
  EXPECT_TRUE(TakenBack({unsure}).empty()) << "given other changes, it may be sure";
  std::vector<Rung> what_if = {RungOf("no-sync", 80, {1.25, 1.2, 1.3})};
  QuoteFindings({finding}, what_if);
  EXPECT_DOUBLE_EQ(what_if[0].speedup.expected, 1.04);
}

}  // namespace
}  // namespace fullbore::diagnose
