#include "fleet/report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "fleet/report_json.h"

namespace fullbore::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

RunAccount ARun(const std::string& id, const std::string& user, int64_t work_ns, int64_t waste_ns,
                const std::string& change = "num_workers=4") {
  RunAccount run;
  run.id = id;
  run.user = user;
  run.device = "cpu";
  run.begin_unix_ns = static_cast<int64_t>(id.size()) * 1000;
  run.given_ns = work_ns + waste_ns;
  run.parts = {{Kind::kWork, "", work_ns}, {Kind::kWaste, "input-bound", waste_ns}};
  run.advice = {{"input-bound", "too-few-workers", id + " waits", change, 1, 2, 4, run.given_ns},
                {"no-tensor-cores", "fp32", "", "amp", 1, 3, 4, run.given_ns}};
  return run;
}

TEST(FleetReportTest, SumsAreThoseOfTheRuns) {
  const Report report =
      ReportOn({ARun("a", "anna", 60, 40), ARun("bb", "ben", 300, 100), ARun("c", "anna", 7, 3)}, By::kUser);
  EXPECT_EQ(report.runs, 3u);
  EXPECT_EQ(report.given_ns, 510);
  int64_t sum = 0;
  for (const Part& part : report.parts) sum += part.device_ns;
  EXPECT_EQ(sum, 510);
  ASSERT_THAT(report.groups, SizeIs(2));
  EXPECT_EQ(report.groups[0].name, "ben");
  EXPECT_EQ(report.groups[1].given_ns, 110);
  EXPECT_EQ(report.groups[1].waste_ns, 43);
  EXPECT_EQ(report.begin_unix_ns, 1000);
  EXPECT_EQ(report.end_unix_ns, 2000);
}

// Of one run only the first edit counts: the second one's gain is not what remains after the first.
TEST(FleetReportTest, AnEditIsCountedOnceForEachRunThatItIsFirstFor) {
  const Report report = ReportOn(
      {ARun("a", "anna", 60, 40), ARun("bb", "ben", 300, 100), ARun("c", "cleo", 900, 100, "num_workers=8")},
      By::kUser);
  ASSERT_THAT(report.fixes, SizeIs(2));
  EXPECT_EQ(report.fixes[0].change, "num_workers=8");
  EXPECT_EQ(report.fixes[1].runs, 2u);
  EXPECT_EQ(report.fixes[1].expected_ns, 250);
  EXPECT_EQ(report.fixes[1].low_ns, 0);
  EXPECT_EQ(report.fixes[1].high_ns, 375);
  EXPECT_EQ(report.fixes[1].run, "bb");
  EXPECT_THAT(report.fixes[1].users, ElementsAre("anna", "ben"));
}

TEST(FleetReportTest, ALetterToOneHasNothingOfOthers) {
  const Report report =
      ReportOn({ARun("a", "anna", 60, 40), ARun("secret", "ben", 300, 100)}, By::kDevice, "anna");
  EXPECT_EQ(report.given_ns, 100);
  const std::string json = ToJson(report).dump();
  EXPECT_THAT(json, Not(HasSubstr("ben")));
  EXPECT_THAT(json, Not(HasSubstr("secret")));
}

TEST(FleetReportTest, WhatRunsDoNotSayIsUnknown) {
  const Report report = ReportOn({ARun("a", "", 1, 0)}, By::kAccount);
  EXPECT_EQ(report.groups[0].name, "unknown");
  EXPECT_THAT(ReportOn({}, By::kUser).groups, IsEmpty());
  EXPECT_FALSE(ByNamed("colour").ok());
  EXPECT_EQ(*ByNamed("partition"), By::kPartition);
}

}  // namespace
}  // namespace fullbore::fleet
