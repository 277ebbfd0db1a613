#include "fleet/report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "fleet/report_json.h"
#include "fleet/report_markdown.h"
#include "fleet/report_terminal.h"
#include "fleet/testing/sums_in.h"

namespace fullbore::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

RunAccount ARun(const std::string& id, const std::string& user, int64_t work_ns, int64_t waste_ns,
                const std::string& change = "num_workers=4") {
  RunAccount run;
  run.id = id;
  run.path = "/runs/" + id;
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
  WideNs sum = 0;
  for (const PartTotal& part : report.parts) sum += part.device_ns;
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
  EXPECT_THAT(ReportOn(std::vector<RunAccount>(), By::kUser).groups, IsEmpty());
  EXPECT_FALSE(ByNamed("colour").ok());
  EXPECT_EQ(*ByNamed("partition"), By::kPartition);
}

// Every part of the sums against the accounts themselves.
TEST(FleetReportTest, SumsAreExactWhateverTheRunsAre) {
  std::mt19937 random(7);
  const auto any = [&](int most) { return static_cast<int64_t>(random() % static_cast<unsigned>(most)); };
  for (int round = 0; round < 20; ++round) {
    std::vector<RunAccount> runs;
    std::map<std::pair<Kind, std::string>, int64_t> parts;
    for (int64_t i = 0; i < 30; ++i) {
      runs.push_back(
          ARun(fmt::format("run{}", i), fmt::format("user{}", any(4)), any(1 << 30), any(1 << 30)));
      for (const Part& part : runs.back().parts) parts[{part.kind, part.cause}] += part.device_ns;
    }
    const Report report = ReportOn(runs, static_cast<By>(any(4)));
    for (const PartTotal& part : report.parts) EXPECT_EQ(part.device_ns, (parts[{part.kind, part.cause}]));
    WideNs given_ns = 0, grouped_ns = 0;
    for (const RunAccount& run : runs) given_ns += run.given_ns;
    for (const Group& group : report.groups) grouped_ns += group.given_ns;
    EXPECT_EQ(report.given_ns, given_ns);
    EXPECT_EQ(grouped_ns, given_ns);
  }
}

TEST(FleetReportTest, WhatIsExemptIsNeitherWasteNorAdvised) {
  RunAccount notebook = ARun("a", "anna", 60, 40);
  notebook.command = "/usr/bin/Jupyter-lab --port 1";
  RunAccount held = ARun("b", "ben", 10, 90);
  held.partition = "interactive";
  const std::vector<Exemption> rules = {{.partition = "interactive", .why = "people think there"},
                                        {.user = "anna", .command = "jupyter", .why = "a notebook"}};
  const auto runs = {notebook, held, ARun("c", "anna", 7, 3), ARun("d", "ben", 1, 1)};
  const Report report = ReportOn(SumsIn(runs, "", rules), By::kUser, rules);
  EXPECT_EQ(report.given_ns, 212);
  ASSERT_THAT(report.parts, SizeIs(4));
  EXPECT_EQ(report.parts[1].kind, Kind::kWaste);
  EXPECT_EQ(report.parts[1].device_ns, 4);
  EXPECT_THAT((std::vector{report.parts[2].cause, report.parts[3].cause}),
              UnorderedElementsAre("people think there", "a notebook"));
  EXPECT_EQ(report.parts[2].device_ns, 100);
  ASSERT_THAT(report.fixes, SizeIs(1));
  EXPECT_EQ(report.fixes[0].runs, 2u);
}

// A rule's text is text: % and _ match themselves.
TEST(FleetReportTest, AnExemptionsCommandIsNoPattern) {
  RunAccount run = ARun("a", "anna", 60, 40);
  run.command = "python train.py";
  EXPECT_EQ(SumsIn({run}, "", {{.command = "t%n", .why = "x"}}).runs[0].of.exemption, -1);
  EXPECT_EQ(SumsIn({run}, "", {{.command = "trai_", .why = "x"}}).runs[0].of.exemption, -1);
  EXPECT_EQ(SumsIn({run}, "", {{.command = "TRAIN", .why = "x"}}).runs[0].of.exemption, 0);
}

TEST(FleetReportTest, WhatWasAskedForAndHardlyUsedIsTold) {
  RunAccount run = ARun("a", "anna", 60, 40);
  run.ended = true;
  run.use.cores_given = 16;
  run.use.cores_mean = run.use.cores_p95 = 1;
  run.use.gpus_given = 4;
  run.use.gpus_used = 0;
  RunAccount busy = ARun("b", "ben", 60, 40);
  busy.ended = true;
  busy.use = run.use;
  busy.use.cores_p95 = 15;
  busy.use.gpus_used = 4;
  const Report report = ReportOn({run, busy}, By::kUser);
  ASSERT_THAT(report.asked, SizeIs(2));
  EXPECT_EQ(report.asked[0].what, "GPUs");
  EXPECT_EQ(report.asked[0].given, 4);
  EXPECT_EQ(report.asked[1].what, "cores");
  EXPECT_EQ(report.asked[1].given, 16);
  EXPECT_EQ(report.asked[1].used, 1);
  EXPECT_THAT(report.asked[1].users, ElementsAre("anna"));
}

// In hours of three devices, of which one has no price.
TEST(FleetReportTest, EachDeviceCostsWhatItsHoursCost) {
  constexpr int64_t kHour = 3600 * int64_t{1'000'000'000};
  std::vector<RunAccount> runs = {ARun("a", "anna", 6 * kHour, 4 * kHour), ARun("b", "ben", 3 * kHour, kHour),
                                  ARun("c", "ben", kHour, kHour)};
  runs[0].device = "H100";
  runs[1].device = "T4";
  runs[2].device = "cpu";
  const auto of_hour = [](const std::string& device) -> std::optional<double> {
    if (device == "cpu") return std::nullopt;
    return device == "H100" ? 2.0 : 0.5;
  };
  const Report report = ReportOn(SumsIn(runs), By::kUser, {}, {of_hour, "EUR"});
  EXPECT_DOUBLE_EQ(report.cost, 10 * 2.0 + 4 * 0.5);
  EXPECT_THAT(report.unpriced, ElementsAre("cpu"));
  double parts = 0, saved = 0;
  for (const PartTotal& part : report.parts) parts += part.cost;
  EXPECT_DOUBLE_EQ(parts, report.cost);
  for (const Fix& fix : report.fixes) saved += fix.expected_cost;
  EXPECT_GT(saved, 0);
  const std::string text = ToText(report, {}, "", LaidOut(false));
  EXPECT_THAT(text, HasSubstr("16.0 device hours, 22.00 EUR"));
  EXPECT_THAT(text, HasSubstr("no price is known of cpu"));
  EXPECT_FALSE(ToJson(ReportOn(SumsIn(runs), By::kUser)).contains("cost")) << "nobody said a price";
}

TEST(FleetReportTest, MarkdownHasNamesAsDataAndALetterNothingOfOthers) {
  const std::string all = ToMarkdown(ReportOn({ARun("a", "an|na\n# x", 60, 40)}, By::kUser), {""});
  EXPECT_THAT(all, HasSubstr("| an\\|na \\# x | "));
  EXPECT_THAT(all, HasSubstr("num\\_workers=4"));
  const auto runs = {ARun("a", "anna", 60, 40), ARun("b", "ben", 60, 40)};
  EXPECT_THAT(ToMarkdown(ReportOn(runs, By::kUser, "anna"), {"anna"}), Not(HasSubstr("ben")));
}

TEST(FleetReportTest, ATrendNamesTheGroupInWhichItChangedMost) {
  const Before before = TrendsOf(
      SumsIn({ARun("a", "anna", 60, 40), ARun("b", "ben", 60, 30)}),
      SumsIn({ARun("a", "anna", 60, 45), ARun("b", "ben", 60, 90), ARun("c", "cleo", 9, 1)}), By::kUser);
  EXPECT_EQ(before.runs, 2u);
  EXPECT_EQ(before.waste_ns, 70);
  ASSERT_THAT(before.trends, SizeIs(1));
  EXPECT_EQ(before.trends[0].cause, "input-bound");
  EXPECT_EQ(before.trends[0].now_ns, 136);
  EXPECT_EQ(before.trends[0].group, "ben");
  EXPECT_EQ(before.trends[0].group_before_ns, 30);
}

}  // namespace
}  // namespace fullbore::fleet
