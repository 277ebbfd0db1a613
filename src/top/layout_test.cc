#include "top/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/printable.h"
#include "top/json.h"
#include "top/terminal.h"

namespace fullbore::top {
namespace {

State AState() {
  State state;
  state.machine.hostname = "box";
  state.machine.cores = 8;
  state.machine.cpu = 0.5;
  state.machine.memory_used = 4e9;
  state.machine.memory_total = 16e9;
  state.machine.core_utilization = {0.1, 0.95};
  Device device;
  device.number = "0";
  device.name = "H100";
  device.utilization = 0.61;
  device.throttle_thermal = 0.4;
  state.machine.devices = {device};
  state.machine.processes = {{12, "python train.py", 1.5, 2e9, 7}, {13, "idle", 0.0, 5e9, 1}};
  Run run;
  run.name = "2026-11-23-0915-train";
  run.ranks = 2;
  run.steps = 1840;
  run.step_ns = 98e6;
  run.samples_per_s = 326;
  run.work = "41,728 tokens/s, 9,900 without padding   12 TFLOP/s by the model";
  run.shares = {{"forward", 0.4}, {"data_wait", 0.6}};
  run.step_times_ns = {90e6, 98e6, 200e6};
  run.shares_over_time = {{{"data_wait", 1.0}}, {{"forward", 1.0}}};
  run.verdict = "Training waits for data 60 % of the time.";
  run.findings = {{"input-bound", run.verdict, "DataLoader(num_workers=4)", true}};
  state.runs = {run, run};
  state.runs[1].name = "2026-11-23-0916-other";
  return state;
}

std::string Text(const State& state, const View& view) {
  return ToText(Layout(state, view), /*colours=*/false);
}

class LayoutAtEverySize : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(LayoutAtEverySize, NeverExceedsTheScreen) {
  for (const Page page : {Page::kOverview, Page::kRun, Page::kHelp}) {
    for (const bool unicode : {true, false}) {
      const View view{
          .columns = GetParam().first, .rows = GetParam().second, .unicode = unicode, .page = page};
      const std::vector<Line> lines = Layout(AState(), view);
      EXPECT_EQ(lines.size(), static_cast<size_t>(view.rows));
      for (const Line& line : lines) {
        int columns = 0;
        for (const Span& span : line) columns += Columns(span.text);
        EXPECT_LE(columns, view.columns) << ToText({line}, false);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, LayoutAtEverySize,
                         testing::Values(std::pair(80, 24), std::pair(40, 10), std::pair(20, 5),
                                         std::pair(200, 60)));

TEST(LayoutTest, ShowsRunsAboveTheMachine) {
  const std::string text = Text(AState(), {.columns = 100, .rows = 40});
  EXPECT_LT(text.find("2026-11-23-0915-train"), text.find("MACHINE box"));
  for (const char* part : {"1,840", "98 ms", "326", "data 60 %", "Training waits for data 60 %", "GPU 0",
                           "slowed by heat 40 %", "4 of 8 cores", "python train.py"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(LayoutTest, WithoutRunsIsAMonitorThatSaysHowToRecordOne) {
  State state = AState();
  state.runs.clear();
  const std::string text = Text(state, {.columns = 80, .rows = 24});
  EXPECT_NE(text.find("fullbore run -- python train.py"), std::string::npos);
  EXPECT_NE(text.find("MACHINE box"), std::string::npos);
}

TEST(LayoutTest, SortsProcessesAsAsked) {
  const auto before = [](const std::string& text) {
    return text.find("python train.py") < text.find("idle");
  };
  EXPECT_TRUE(before(Text(AState(), {.columns = 80, .rows = 40, .sort = Sort::kCpu})));
  EXPECT_FALSE(before(Text(AState(), {.columns = 80, .rows = 40, .sort = Sort::kMemory})));
  EXPECT_TRUE(before(Text(AState(), {.columns = 80, .rows = 40, .sort = Sort::kPid})));
}

TEST(LayoutTest, AnOpenRunShowsItsFindingsWithTheChange) {
  const std::string text = Text(AState(), {.columns = 100, .rows = 30, .page = Page::kRun});
  EXPECT_NE(text.find("input-bound"), std::string::npos);
  EXPECT_NE(text.find("DataLoader(num_workers=4)"), std::string::npos);
  EXPECT_EQ(text.find("MACHINE"), std::string::npos);
}

TEST(LayoutTest, ARunThatEndedMeanwhileLeavesTheFirstSelected) {
  EXPECT_EQ(SelectedRun(AState(), {.selected = "2026-11-23-0916-other"}), 1U);
  EXPECT_EQ(SelectedRun(AState(), {.selected = "gone"}), 0U);
}

TEST(LayoutTest, NamesCannotMoveTheCursor) {
  State state = AState();
  state.runs[0].name = state.machine.processes[0].command = "a\x1b[2Jb";
  EXPECT_EQ(Text(state, {.columns = 100, .rows = 40}).find('\x1b'), std::string::npos);
  EXPECT_EQ(ToJsonLine(state, 0).find('\x1b'), std::string::npos);
}

TEST(LayoutTest, IsAsciiWhereTheTerminalIs) {
  for (const char c : Text(AState(), {.columns = 100, .rows = 40, .unicode = false})) EXPECT_GE(c, 0);
}

TEST(LayoutTest, OfARunItIsSaidWhatTokensAreOfUseAndWhatTheModelComputes) {
  EXPECT_THAT(Text(AState(), {.columns = 100, .rows = 40}),
              testing::HasSubstr("41,728 tokens/s, 9,900 without padding   12 TFLOP/s by the model"));
  State without = AState();
  without.runs[0].work = without.runs[1].work = "";
  EXPECT_THAT(Text(without, {.columns = 100, .rows = 40}), testing::Not(testing::HasSubstr("tokens/s")));
}

}  // namespace
}  // namespace fullbore::top
