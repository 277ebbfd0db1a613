#include "explain/diagnose/compare.h"

#include <gmock/gmock.h>

namespace fullbore::diagnose {
namespace {

using ::testing::ElementsAre;

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

}  // namespace
}  // namespace fullbore::diagnose
