#include "cli/next_step.h"

#include <gmock/gmock.h>

namespace fullbore::cli {
namespace {

using nlohmann::ordered_json;

ordered_json Report(const char* change) {
  return {{"schema", "fullbore.report/1"}, {"findings", {{{"id", "input-bound"}, {"change", change}}}}};
}

TEST(NextStepTest, OfAReportTriesWhatNeedsNoEdit) {
  EXPECT_EQ(NextStepOf(Report("DataLoader(num_workers=4)")), "fullbore compare --set num_workers=4 -- CMD");
}

TEST(NextStepTest, OfAReportIsThePageWhereTheChangeIsTheUsers) {
  EXPECT_EQ(NextStepOf(Report("")), "fullbore help input-bound");
  EXPECT_EQ(NextStepOf(Report("Embedding(10, 20, sparse=True)")), "fullbore help input-bound");
  EXPECT_EQ(NextStepOf(Report("f(rm=1)")), "fullbore help input-bound") << "no knob";
}

TEST(NextStepTest, OfAReportWithoutFindingsIsToTune) {
  EXPECT_EQ(NextStepOf({{"schema", "fullbore.report/1"}, {"findings", ordered_json::array()}}),
            "fullbore tune -- CMD");
}

TEST(NextStepTest, OfAContestFollowsItsClaim) {
  ordered_json contest = {
      {"schema", "fullbore.contest/1"},
      {"verdict", "faster"},
      {"claim", {{"holds", true}}},
      {"trials", {{{"side", "baseline"}, {"run", "a"}}, {{"side", "candidate"}, {"run", "b"}}}}};
  EXPECT_EQ(NextStepOf(contest), "fullbore explain b");
  contest["claim"]["holds"] = false;
  EXPECT_EQ(NextStepOf(contest), "fullbore compare a b");
  contest["verdict"] = "slower";
  EXPECT_EQ(NextStepOf(contest), "fullbore explain a");
}

TEST(NextStepTest, OfATuningIsToCompareWhatItRecommends) {
  const ordered_json answer = {{"schema", "fullbore.tune/1"},
                               {"command", {"python", "my train.py"}},
                               {"recommended", {{"settings", {{"num_workers", 4}}}}}};
  EXPECT_EQ(NextStepOf(answer), "fullbore compare --set num_workers=4 -- python 'my train.py'");
  EXPECT_EQ(NextStepOf({{"schema", "fullbore.tune/1"}, {"command", {"a"}}, {"recommended", nullptr}}),
            "fullbore explain last");
}

TEST(NextStepTest, OfAFleetReadsTheDatabaseThatTheResultIsOf) {
  const auto next = [](const char* schema, const char* database) {
    return NextStepOf({{"schema", schema}, {"database", database}});
  };
  EXPECT_EQ(next("fullbore.fleet_collect/1", "my fleet.db"), "fullbore fleet report --from 'my fleet.db'");
  EXPECT_EQ(next("fullbore.fleet_nodes/1", "postgresql://db/fleet"),
            "fullbore fleet report --from postgresql://db/fleet");
  EXPECT_EQ(next("fullbore.fleet/1", "fleet.db"), "fullbore fleet job JOB --from fleet.db");
  EXPECT_EQ(next("fullbore.fleet_collect/1", ".fullbore/fleet.db"), "fullbore fleet report") << "by itself";
}

TEST(NextStepTest, IsAddedToEachOfAList) {
  const ordered_json runs = WithNextStep({{{"schema", "fullbore.runs/1"}, {"id", "a"}}});
  EXPECT_EQ(runs[0]["next_step"], "fullbore explain a");
  EXPECT_EQ(WithNextStep({{"other", 1}}), ordered_json({{"other", 1}}));
}

}  // namespace
}  // namespace fullbore::cli
