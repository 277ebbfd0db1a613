#include "explain/diagnose/compare.h"

#include <gmock/gmock.h>

#include <cmath>

#include "explain/diagnose/between_starts.h"
#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/testing/made_run.h"

namespace fullbore::diagnose {
namespace {

using ::testing::ElementsAre;
using testing::MadeLoader;
using testing::MadeRank;
using testing::MadeRun;
using testing::MadeStep;

Resource Mean(double mean, std::string unit) { return {mean, mean, mean, mean, std::move(unit)}; }

std::vector<std::string> Ranked(const Diagnosis& before, const Diagnosis& after) {
  std::vector<std::string> names;
  for (const Change& change : Compare(before, after).resources) names.push_back(change.what);
  return names;
}

TEST(CompareTest, ResourcesThatTheVerdictRestsOnComeFirst) {
  Diagnosis before, after;
  before.resources = {{"a_ratio", Mean(0.1, "ratio")},
                      {"cpu_utilization", Mean(0.98, "ratio")},
                      {"disk_write{device=sda}", Mean(1e3, "bytes/s")},
                      {"disk_read{device=sda}", Mean(0, "bytes/s")},
                      {"memory_total", Mean(100e9, "bytes")},
                      {"memory_used", Mean(95e9, "bytes")},
                      {"process_cpu{role=loader}", Mean(1.9, "cores")},
                      {"process_cpu{role=trainer}", Mean(1.0, "cores")}};
  after.resources = {{"a_ratio", Mean(0.3, "ratio")},
                     {"cpu_utilization", Mean(0.6, "ratio")},
                     {"disk_write{device=sda}", Mean(1e6, "bytes/s")},
                     {"disk_read{device=sda}", Mean(4e3, "bytes/s")},  // next to nothing, too
                     {"memory_total", Mean(100e9, "bytes")},
                     {"memory_used", Mean(60e9, "bytes")},
                     {"process_cpu{role=loader}", Mean(2.9, "cores")},
                     {"process_cpu{role=trainer}", Mean(2.0, "cores")}};
  Finding finding;
  finding.evidence = {{"CPU of the workers", 1.9, "cores", "proc", "process_cpu{role=loader}", {}, {}}};
  before.findings = {finding};
  EXPECT_THAT(Ranked(before, after),
              ElementsAre("process_cpu{role=loader}", "cpu_utilization", "memory_used",
                          "disk_write{device=sda}", "process_cpu{role=trainer}", "a_ratio"));
  before.findings[0].evidence[0].series = "process_cpu";  // of every role
  EXPECT_THAT(Ranked(before, after),
              ElementsAre("process_cpu{role=trainer}", "process_cpu{role=loader}", "cpu_utilization",
                          "memory_used", "disk_write{device=sda}", "a_ratio"));
}

MadeStep Waiting(int64_t) { return {.data_ms = 100}; }

TEST(CompareTest, NoFindingIsGoneInARunThatIsTooShortToBeJudged) {
  const auto gone = [](int64_t steps) {
    const auto usual = [](int64_t) { return MadeStep{}; };
    return Compare(Diagnose(MadeRun({MadeRank(0, 100, Waiting)})),
                   Diagnose(MadeRun({MadeRank(0, steps, usual)})))
        .findings_gone;
  };
  EXPECT_EQ(gone(100), std::vector<std::string>{"input-bound"});
  EXPECT_TRUE(gone(3).empty());
}

TEST(CompareTest, AFasterRunIsOutsideTheNoiseAndNamesTheShareThatMoved) {
  const auto jitter = [](int64_t data_ms) {
    return [data_ms](int64_t i) { return MadeStep{.data_ms = data_ms, .forward_ms = 40 + i % 3}; };
  };
  const Comparison comparison = Compare(Diagnose(MadeRun({MadeRank(0, 100, jitter(100))})),
                                        Diagnose(MadeRun({MadeRank(0, 100, jitter(0))})));
  EXPECT_NEAR(comparison.speedup, 2, 0.02);
  EXPECT_TRUE(comparison.significant);
  EXPECT_EQ(comparison.shares.at(0).what, "data_wait");
  EXPECT_EQ(comparison.findings_gone, std::vector<std::string>{"input-bound"});
}

// 100 rows a second, of so many tokens each, of which so many are not padding.
Diagnosis OfTokens(double rows_per_s, double width, double useful) {
  Diagnosis d;
  d.steps = 100;
  d.steps_per_s = rows_per_s / 10;
  d.samples_per_s = rows_per_s;
  d.samples_per_s_low = 0.98 * rows_per_s, d.samples_per_s_high = 1.02 * rows_per_s;
  d.tokens_per_s = rows_per_s * width;
  d.useful_tokens_per_s = rows_per_s * useful;
  return d;
}

TEST(CompareTest, RowsThatHoldMoreThanASampleAreComparedByTheirTokens) {
  const Comparison packed = Compare(OfTokens(100, 512, 128), OfTokens(40, 512, 512));
  EXPECT_EQ(packed.rate_unit, "useful tokens/s");
  EXPECT_DOUBLE_EQ(packed.rate_before, 12'800);
  EXPECT_DOUBLE_EQ(packed.speedup, 1.6) << "though it trains on 40 rows a second instead of 100";
  EXPECT_TRUE(packed.significant);
  EXPECT_NEAR(packed.speedup_high / packed.speedup, std::exp(std::hypot(0.02, 0.02, 1.96 * kBetweenStarts)),
              1e-9);
  const Comparison cut = Compare(OfTokens(100, 512, 128), OfTokens(200, 256, 130));
  EXPECT_EQ(cut.rate_unit, "samples/s") << "the same samples, as far as some batches can tell";
  EXPECT_DOUBLE_EQ(cut.speedup, 2);
}

// A run of 100 steps whose first finding predicts a gain of `change`, or one after it: 10 to 20 steps/s.
Diagnosis Predicting(const std::string& change) {
  Diagnosis before;
  before.steps = 100;
  before.steps_per_s = 10;
  before.samples_per_s = 100;
  before.samples_per_s_low = 98, before.samples_per_s_high = 102;
  Finding finding;
  finding.id = "input-bound";
  finding.share = 0.5;
  finding.change = change;
  finding.speedup = {2, 1.8, 2.2};
  finding.method = "replay";
  before.findings = {finding};
  before.facts = {{"loader.num_workers", "0"}, {"torch_threads", "2"}, {"pid", "1"}};
  return before;
}

Diagnosis Without(Diagnosis run, double times) {
  run.findings.clear();
  *run.samples_per_s *= times, *run.samples_per_s_low *= times, *run.samples_per_s_high *= times;
  return run;
}

TEST(CompareTest, APredictionHoldsOnlyForTheChangeThatWasMade) {
  const Diagnosis before = Predicting("DataLoader(num_workers=4)");
  Diagnosis after = Without(before, 2);
  EXPECT_EQ(Compare(before, after).prediction, Prediction::kNotTested) << "faster, for whatever reason";
  after.facts["loader.num_workers"] = "4";
  after.facts["pid"] = "2";
  EXPECT_EQ(Compare(before, after).prediction, Prediction::kHeld);
  after.facts["torch_threads"] = "1";
  const Comparison both = Compare(before, after);
  EXPECT_EQ(both.prediction, Prediction::kAnotherChange);
  EXPECT_THAT(both.other_changes, ElementsAre("torch_threads"));
  after.facts["torch_threads"] = "2";
  after.facts["loader.num_workers"] = "2";
  EXPECT_EQ(Compare(before, after).prediction, Prediction::kNotTested) << "two workers are not four";
}

TEST(CompareTest, AVariableForThreadsIsKnownByWhatItLeavesBehind) {
  const Diagnosis before = Predicting("OMP_NUM_THREADS=1");
  Diagnosis after = Without(before, 2);
  after.facts["omp_num_threads"] = "\"1\"";
  after.facts["torch_threads"] = "1";
  EXPECT_EQ(Compare(before, after).prediction, Prediction::kHeld);
  EXPECT_EQ(Compare(before, Without(before, 2)).prediction, Prediction::kNotTested);
}

TEST(CompareTest, AChangeThatLeavesNoFactWasMadeWhereTheCauseIsGone) {
  const Diagnosis before = Predicting("loss.detach()");
  EXPECT_EQ(Compare(before, before).prediction, Prediction::kNotTested);
  EXPECT_EQ(Compare(before, Without(before, 2)).prediction, Prediction::kHeld);
  EXPECT_EQ(Compare(before, Without(before, 1.3)).prediction, Prediction::kMissed);
  Diagnosis other = Without(before, 2);
  other.facts["loader.num_workers"] = "4";
  EXPECT_EQ(Compare(before, other).prediction, Prediction::kAnotherChange);
}

TEST(CompareTest, WhatCouldNotHaveFailedDoesNotHold) {
  const Diagnosis before = Predicting("loss.detach()");
  Diagnosis after = Without(before, 1.5);
  after.samples_per_s_high = 300;
  EXPECT_EQ(Compare(before, after).prediction, Prediction::kTooNoisy);
  after.samples_per_s_low.reset(), after.samples_per_s_high.reset();
  EXPECT_EQ(Compare(before, after).prediction, Prediction::kTooNoisy);
}

TEST(CompareTest, TheLoaderIsAmongTheFacts) {
  record::RankInfo rank = MadeRank(0, 100, Waiting);
  rank.loaders = {MadeLoader(1, 100, 200, 190)};
  EXPECT_EQ(Diagnose(MadeRun({rank})).facts.at("loader.num_workers"), "1");
}

TEST(CompareTest, TheSameRunTwiceIsWithinTheNoise) {
  const auto jitter = [](int64_t i) { return MadeStep{.forward_ms = 40 + (i * 7) % 5}; };
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 100, jitter)}));
  EXPECT_FALSE(Compare(diagnosis, diagnosis).significant);
}

TEST(CompareTest, WhatTwoStartsOfOneProgramDifferByIsNoise) {
  const auto by = [](double times) {
    Diagnosis run = OfTokens(100 * times, 512, 128);
    run.samples_per_s_low = run.samples_per_s_high = run.samples_per_s;  // each is sure of itself
    return run;
  };
  EXPECT_FALSE(Compare(by(1), by(0.94)).significant);
  EXPECT_TRUE(Compare(by(1), by(0.9)).significant);
  Diagnosis restless = by(0.9);
  restless.fitness.conditions = {{"noise", "", 0, "", {}, ""}};
  EXPECT_FALSE(Compare(by(1), restless).significant) << "the neighbours may have made the difference";
  restless = by(0.75);
  restless.fitness.conditions = {{"noise", "", 0, "", {}, ""}};
  EXPECT_TRUE(Compare(by(1), restless).significant);
}

}  // namespace
}  // namespace fullbore::diagnose
