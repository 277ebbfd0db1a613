// What the browser makes of the page is tested in tests/report.
#include "report/compared.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "report/compared_page.h"
#include "report/compared_text.h"

namespace fullbore::report {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Outcome = ConditionAnswer::Outcome;

// So many samples a second, to 1 %, that wait for data for this part of the time.
diagnose::Diagnosis ARun(const std::string& id, double samples_per_s, double data_wait) {
  diagnose::Diagnosis run;
  run.run_id = id;
  run.steps = 100;
  run.steps_per_s = samples_per_s / 32;
  run.mean_step_ns = 1e9 / run.steps_per_s;
  run.samples_per_s = samples_per_s;
  run.samples_per_s_low = 0.99 * samples_per_s, run.samples_per_s_high = 1.01 * samples_per_s;
  run.shares = {{"data_wait", data_wait}, {"forward", 1 - data_wait}};
  run.facts = {{"loader.num_workers", id == "base" ? "0" : "4"}, {"seed", "1"}};
  return run;
}

Compared Of(const std::vector<diagnose::Diagnosis>& runs, const diagnose::ShareMoves& moves) {
  Compared compared{runs, {}, {}};
  for (size_t i = 1; i < runs.size(); ++i)
    compared.against_first.push_back(diagnose::Compare(runs[0], runs[i], moves));
  return compared;
}

const diagnose::ShareMoves kWaitMoved = {{"data_wait", {-0.35, -0.25}}, {"forward", {-0.05, 0.4}}};

Compared Three() {
  return Of({ARun("base", 100, 0.5), ARun("four", 160, 0.2), ARun("same", 100.5, 0.5)}, kWaitMoved);
}

std::vector<std::string> CellsOf(const Compared& compared, const std::string& label) {
  for (const ComparedSection& section : TableOf(compared).sections) {
    for (const ComparedRow& row : section.rows) {
      if (row.label == label) return row.cells;
    }
  }
  return {};
}

diagnose::LoggedMetric LossUpTo(int64_t last_step, double value) {
  diagnose::LoggedMetric loss;
  loss.name = "loss";
  for (int64_t step = 0; step <= last_step; step += 100) loss.points.push_back({step, step, value});
  return loss;
}

TEST(ComparedTest, WhatTheScriptsLogStandsWhereAllOfThemHaveBeen) {
  Compared compared = Three();
  compared.runs[0].logged = {LossUpTo(400, 0.5)};
  compared.runs[2].logged = {LossUpTo(1200, 0.25)};
  EXPECT_THAT(CellsOf(compared, "loss at step 400"), ElementsAre("0.5", "", "0.25"));
  EXPECT_THAT(CellsOf(compared, "loss at its end"), IsEmpty());  // the same once more
  compared.runs[2].logged[0].points.push_back({1300, 1300, 0.125});
  EXPECT_THAT(CellsOf(compared, "loss at its end"), ElementsAre("0.5", "", "0.125"));
}

TEST(ComparedTest, EachIsHeldAgainstTheFirst) {
  EXPECT_THAT(CellsOf(Three(), "against the first"),
              ElementsAre("", "1.60x (1.48 to 1.73)", "1.00x (0.93 to 1.09), within the noise"));
}

TEST(ComparedTest, AShareHasChangedOnlyWhereThatIsMoreThanNoise) {
  EXPECT_THAT(CellsOf(Three(), "data_wait"), ElementsAre("50 %", "20 % (-30.0 pt)", "50 %"));
  EXPECT_THAT(CellsOf(Three(), "forward"), ElementsAre("50 %", "80 % (+30.0 pt, within the noise)", "50 %"));
  const Compared unknown = Of({ARun("base", 100, 0.5), ARun("four", 160, 0.2)}, {});
  EXPECT_THAT(CellsOf(unknown, "data_wait"), ElementsAre("50 %", "20 % (-30.0 pt, too few steps to tell)"));
}

TEST(ComparedTest, OnlyFactsThatDifferAreListed) {
  EXPECT_THAT(CellsOf(Three(), "loader.num_workers"), ElementsAre("0", "4", "4"));
  EXPECT_THAT(CellsOf(Three(), "seed"), IsEmpty());
}

TEST(ComparedTest, RunsAreColumnsWhereThereIsRoomForThem) {
  const ComparedTable table = TableOf(Three());
  EXPECT_THAT(ComparedForTerminal(table, 200, false), HasSubstr("50 %"));
  EXPECT_THAT(ComparedForTerminal(table, 60, false), HasSubstr("\ndata_wait\n  base: 50 %\n  four: 20 %"));
  const std::string narrow = ComparedForTerminal(table, 40, false);
  for (const std::string_view line : Split(narrow, '\n')) EXPECT_LE(Columns(line), 40) << line;
}

TEST(ComparedTest, MarkdownHoldsNamesAsData) {
  Compared compared = Three();
  compared.runs[1].run_id = "a|b\n# c";
  const std::string text = ComparedAsMarkdown(TableOf(compared));
  EXPECT_THAT(text, HasSubstr("| speed | base | a\\|b \\# c | same |\n|---|---|---|---|\n"));
}

TEST(ComparedTest, JunitTellsFailuresFromWhatIsNotKnown) {
  Compared compared = Three();
  compared.runs[1].run_id = "<four> & \"co\"";
  compared.conditions = {{1, "slower", Outcome::kPassed},
                         {1, "data_wait > +3pt", Outcome::kUnknown},
                         {2, "slower", Outcome::kFailed}};
  const std::string text = ComparedAsJunit(compared);
  EXPECT_THAT(
      text, HasSubstr("name=\"&lt;four&gt; &amp; &quot;co&quot;\" tests=\"2\" failures=\"0\" errors=\"1\""));
  EXPECT_THAT(text, HasSubstr("<error message=\"data_wait &gt; +3pt is not known\">"));
  EXPECT_THAT(text, HasSubstr("<failure message=\"slower holds\">1 times as fast as base, 0.928 to 1.088"));
  EXPECT_THAT(compared.FailedIf(), ElementsAre("slower"));
  EXPECT_THAT(CellsOf(compared, "slower"), ElementsAre("", "passes", "fails"));
}

TEST(ComparedTest, JsonHasEachPairOnceAndConditionsWhereAsked) {
  Compared compared = Three();
  EXPECT_EQ(ToJson(compared)["schema"], "fullbore.comparisons/1");
  EXPECT_EQ(ToJson(compared)["against_first"].size(), 2);
  EXPECT_THAT(ToJson(compared)["against_first"][0]["shares"].dump(),
              HasSubstr(R"("change_ci95":[-0.35,-0.25],"significant":true})"));
  EXPECT_FALSE(ToJson(compared).contains("failed_if"));
  compared.conditions = {{1, "slower", Outcome::kPassed}};
  EXPECT_THAT(ToJson(compared)["failed_if"], IsEmpty());
}

TEST(ComparedTest, ThePageHoldsNamesAsDataToo) {
  Compared compared = Three();
  compared.runs[1].run_id = "</script><img src=x>";
  const std::string page = ToHtml(compared);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("@DATA@")));
}

}  // namespace
}  // namespace fullbore::report
