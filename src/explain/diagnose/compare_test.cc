#include "explain/diagnose/compare.h"

#include <gmock/gmock.h>

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
MadeStep Usual(int64_t) { return {}; }

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

TEST(CompareTest, APredictionIsJudgedOnlyWhereTheCauseWasTakenAway) {
  record::RankInfo rank = MadeRank(0, 100, Waiting);
  rank.loaders = {MadeLoader(1, 100, 200, 190)};
  const Diagnosis waiting = Diagnose(MadeRun({rank}));
  EXPECT_FALSE(Compare(waiting, waiting).predicted.has_value());
  EXPECT_TRUE(Compare(waiting, Diagnose(MadeRun({MadeRank(0, 100, Usual)}))).predicted.has_value());
}

TEST(CompareTest, TheSameRunTwiceIsWithinTheNoise) {
  const auto jitter = [](int64_t i) { return MadeStep{.forward_ms = 40 + (i * 7) % 5}; };
  const Diagnosis diagnosis = Diagnose(MadeRun({MadeRank(0, 100, jitter)}));
  EXPECT_FALSE(Compare(diagnosis, diagnosis).significant);
}

}  // namespace
}  // namespace fullbore::diagnose
