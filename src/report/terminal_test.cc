// The goldens are src/report/testing/golden/<sample>-<width>.txt. Write them anew, and look at the
// difference, with
//   FULLBORE_UPDATE_GOLDENS=1 ctest --test-dir build/release -R TerminalTest
#include "report/terminal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <regex>

#include "base/fd.h"
#include "base/printable.h"
#include "base/testing/source_directory.h"
#include "base/text.h"
#include "report/testing/samples.h"

namespace fullbore::report {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

FurtherReading ReadingOf(const testing::Sample& sample) {
  const std::string& id = sample.diagnosis.run_id;
  return {".fullbore/runs/" + id + ".html", "fullbore explain " + id};
}

void ExpectGolden(const testing::Sample& sample, const TerminalStyle& style, const std::string& suffix) {
  const std::string path =
      fullbore::testing::SourceDirectory() + "/src/report/testing/golden/" + sample.name + suffix + ".txt";
  const std::string text = ToTerminal(sample.diagnosis, style, ReadingOf(sample));
  if (std::getenv("FULLBORE_UPDATE_GOLDENS")) std::ofstream(path, std::ios::binary) << text;
  const Result<std::string> golden = ReadFile(path);
  ASSERT_TRUE(golden.ok()) << golden.error().text;
  EXPECT_EQ(text, *golden) << path;
}

TEST(TerminalTest, MatchesTheGoldensAt80And160Columns) {
  for (const testing::Sample& sample : testing::AllSamples()) {
    ExpectGolden(sample, {80, false, true}, "-80");
    ExpectGolden(sample, {160, false, true}, "-160");
  }
}

TEST(TerminalTest, WithoutUnicodeEveryByteIsAscii) {
  for (const testing::Sample& sample : testing::AllSamples()) {
    const std::string text = ToTerminal(sample.diagnosis, {80, false, false}, {});
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) {
      return c == '\n' || (c >= ' ' && c <= '~');
    })) << text;
  }
  ExpectGolden(testing::InputBound(), {80, false, false}, "-80-ascii");
}

// A metric whose values fall to zero, one a second.
diagnose::LoggedMetric Falling(const std::string& name, int64_t values) {
  diagnose::LoggedMetric metric;
  metric.name = name;
  metric.values = values;
  metric.first = static_cast<double>(values);
  for (int64_t i = 0; i < values; ++i)
    metric.points.push_back({i * 1'000'000'000, i, static_cast<double>(values - i)});
  metric.last = metric.points.back().value;
  return metric;
}

TEST(TerminalTest, WhatAWindowSawIsOfItsSteps) {
  testing::Sample sample = testing::InputBound();
  diagnose::WindowReport& window = sample.diagnosis.device_window.emplace();
  window.first_step = 101;
  window.steps = 1;
  window.operators = {{"aten::mm", 4, 0.3, 1e6, std::nullopt}};
  EXPECT_THAT(ToTerminal(sample.diagnosis, {}),
              HasSubstr("the CPU in step 101, under its profiler: aten::mm 30 %"));
  window.steps = 3;
  EXPECT_THAT(ToTerminal(sample.diagnosis, {}), HasSubstr("the CPU in steps 101 to 103, under"));
}

TEST(TerminalTest, WhatTheScriptLogsIsTold) {
  testing::Sample sample = testing::InputBound();
  sample.diagnosis.logged = {Falling("train/loss", 100), Falling("lr", 1)};
  sample.diagnosis.logged[0].not_finite = 3;
  const std::string text = ToTerminal(sample.diagnosis, {80, false, true}, {});
  EXPECT_THAT(text, HasSubstr("\n  logged by the script\n    train/loss  100 → 1  █"));
  EXPECT_THAT(text, HasSubstr("▁  3 times NaN or infinite\n    lr          1"));
  const std::string ascii = ToTerminal(sample.diagnosis, {80, false, false}, {});
  EXPECT_TRUE(
      std::all_of(ascii.begin(), ascii.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

TEST(TerminalTest, MemoryIsNoPartOfWhatTheScriptLogs) {
  testing::Sample sample = testing::InputBound();
  sample.diagnosis.logged = {Falling("lr", 1)};
  sample.diagnosis.memory.reset();
  sample.diagnosis.memory_what_if.emplace().missing = "no batch of another size was seen";
  EXPECT_THAT(ToTerminal(sample.diagnosis, {}), HasSubstr("\n\n  what if"));
}

TEST(TerminalTest, NoNameThatTheScriptLogsLeavesItsLine) {
  testing::Sample sample = testing::InputBound();
  for (const char* name :
       {"a\x1b[31m\nb", "\xff\xfe", "", "非常に長い名前非常に長い名前非常に長い名前非常に長い名前"})
    sample.diagnosis.logged.push_back(Falling(name, 50));
  sample.diagnosis.logged.push_back(Falling(std::string(3000, 'x'), 2));
  sample.diagnosis.logged.push_back(Falling("sixth", 2));
  sample.diagnosis.logged[1].points = {{0, 0, -1e308}, {1, 1, 1e308}};  // their difference is infinite
  sample.diagnosis.logged[2].points.clear();
  const std::string text = ToTerminal(sample.diagnosis, {60, false, true}, {});
  EXPECT_THAT(text, HasSubstr("and 1 more in the full report"));
  for (const std::string_view line : Split(text, '\n')) {
    EXPECT_LE(Columns(line), 60) << line;
    EXPECT_EQ(line.find('\x1b'), std::string_view::npos);
  }
}

TEST(TerminalTest, NoLineIsWiderThanTheTerminal) {
  for (const testing::Sample& sample : testing::AllSamples()) {
    for (int width = 40; width <= 200; width += 5) {
      for (const bool unicode : {false, true}) {
        const std::string text = ToTerminal(sample.diagnosis, {width, false, unicode}, {});
        for (std::string_view line : Split(text, '\n')) {
          EXPECT_LE(Columns(line), width) << sample.name << ": " << line;
        }
      }
    }
  }
}

TEST(TerminalTest, ColoursChangeNothingElse) {
  const std::regex colour("\x1b\\[[0-9;]*m");
  for (const testing::Sample& sample : testing::AllSamples()) {
    for (const int width : {80, 160}) {
      const std::string plain = ToTerminal(sample.diagnosis, {width, false, false}, {});
      const std::string colored = ToTerminal(sample.diagnosis, {width, true, false}, {});
      EXPECT_NE(colored, plain);
      EXPECT_EQ(std::regex_replace(colored, colour, ""), plain);
    }
  }
}

TEST(TerminalTest, OnlyOurOwnEscapesReachTheTerminal) {
  const std::regex ours("\x1b\\[(0|[0-9;]*)m");
  const std::string text = ToTerminal(testing::HostileTexts().diagnosis, {100, true, true}, {});
  const std::string bare = std::regex_replace(text, ours, "");
  for (const std::string_view line : Split(bare, '\n')) EXPECT_EQ(Printable(line, true), line);
}

TEST(TerminalTest, AHealthyRunSaysSo) {
  EXPECT_THAT(ToTerminal(testing::Healthy().diagnosis, {}), HasSubstr("Nothing holds this run back"));
}

TEST(TerminalTest, AProgramThatNeverTrainsShowsTheMachine) {
  const std::string text = ToTerminal(testing::NoTraining().diagnosis, {});
  EXPECT_THAT(text, HasSubstr("No training seen"));
  EXPECT_THAT(text, HasSubstr("CPU 1.8 of 2 cores"));
  EXPECT_THAT(text, Not(HasSubstr("step 0")));
}

TEST(TerminalTest, ATraceWithoutTrainingIsSpokenOfAsATrace) {
  diagnose::Diagnosis d;
  d.facts["trace_holds"] = "\"12 operators of the CPU\"";
  d.not_judged.push_back({"the trace", "it marks no steps", "prof.step()"});
  EXPECT_THAT(ToTerminal(d, {.width = 200}),
              HasSubstr("marks no steps and holds no device activity, only 12 operators of the CPU. "
                        "To be judged it needs prof.step()."));
  d.facts["trace_holds"] = "\"\"";
  EXPECT_THAT(ToTerminal(d, {}), HasSubstr("This trace holds no events"));
  EXPECT_THAT(ToTerminal(d, {}), Not(HasSubstr("command")));
}

TEST(TerminalTest, AKilledRunSaysHowItEnded) {
  EXPECT_THAT(ToTerminal(testing::OutOfMemory().diagnosis, {}), HasSubstr("out of memory (exit status 137)"));
  diagnose::Diagnosis d;
  d.exit_status = 139;
  EXPECT_THAT(ToTerminal(d, {}), HasSubstr("killed by signal 11"));
  d.exit_status = 2;
  EXPECT_THAT(ToTerminal(d, {}), HasSubstr("failed with exit status 2"));
  d.exit_status = 0;
  EXPECT_THAT(ToTerminal(d, {}), Not(HasSubstr("exit status")));
}

TEST(TerminalTest, RanksThatAreAlikeShareALine) {
  const std::string text = ToTerminal(testing::Straggler().diagnosis, {100, false, true});
  EXPECT_THAT(text, HasSubstr("ranks 0-4,6-7"));
  EXPECT_THAT(text, HasSubstr("rank 5 cuda:5"));
  EXPECT_THAT(ToTerminal(testing::Healthy().diagnosis, {}), Not(HasSubstr("rank")));
}

TEST(TerminalTest, ARankKeepsItsLargestSharesWhenRoomIsScarce) {
  diagnose::Diagnosis d = testing::Straggler().diagnosis;
  d.ranks[5].shares = {{"compute", 0.28},      {"data_wait", 0.09}, {"copy_exposed", 0.06}, {"sync", 0.06},
                       {"comm_exposed", 0.43}, {"launch", 0.06},    {"host_other", 0.02}};
  for (const int width : {60, 80, 100, 120}) {
    const std::string text = ToTerminal(d, {width, false, true});
    const std::string rank = text.substr(text.find("rank 5"));
    EXPECT_THAT(rank.substr(0, rank.find("also")), HasSubstr("comm 43 %")) << width;
  }
  const std::string narrow = ToTerminal(d, {80, false, true});
  EXPECT_THAT(narrow, ContainsRegex("rank 5.*compute 28 %.*comm 43 %.*rest 29 %\n"));
}

TEST(TerminalTest, EveryFindingSaysWhereItIsExplained) {
  for (const testing::Sample& sample : {testing::InputBound(), testing::Straggler(), testing::Healthy()}) {
    for (const int width : {60, 80, 160}) {
      const std::string text = ToTerminal(sample.diagnosis, {width, false, true});
      for (const diagnose::Finding& finding : sample.diagnosis.findings)
        EXPECT_THAT(text, HasSubstr("why: fullbore help " + finding.id)) << sample.name << width;
    }
  }
}

TEST(TerminalTest, AdviceIsWrappedRatherThanCut) {
  diagnose::Diagnosis d = testing::InputBound().diagnosis;
  for (diagnose::Finding& finding : d.findings) {
    finding.change.clear();
    finding.fix = {
        "Use four loader workers, keep them between epochs, and let each of them fetch four batches "
        "ahead, so that the last word of this advice is readable"};
  }
  for (const int width : {60, 80, 120}) {
    for (const bool unicode : {false, true}) {
      const std::string text = ToTerminal(d, {width, false, unicode});
      EXPECT_THAT(text, Not(HasSubstr("…")));
      size_t advised = 0;
      for (size_t at = 0; (at = text.find("readable", at)) != std::string::npos; ++at) ++advised;
      EXPECT_EQ(advised, d.findings.size()) << text;
    }
  }
}

TEST(TerminalTest, OneStepIsCalledOneStep) {
  const std::string text = ToTerminal(testing::OneStepTrace().diagnosis, {});
  EXPECT_THAT(text, HasSubstr(", one step"));
  EXPECT_THAT(text, Not(HasSubstr("1 steps")));
}

TEST(TerminalTest, AtMostFiveFurtherFindingsAreShown) {
  diagnose::Diagnosis d = testing::InputBound().diagnosis;
  d.findings.resize(9, d.findings[2]);
  const std::string text = ToTerminal(d, {160, false, true});
  EXPECT_THAT(text, HasSubstr("\n  6  "));
  EXPECT_THAT(text, Not(HasSubstr("\n  7  ")));
  EXPECT_THAT(text, HasSubstr("and 3 more in the full report"));
}

TEST(TerminalTest, AMessageIsShownInFullBecauseTheNextStepComesLast) {
  testing::Sample sample = testing::InputBound();
  sample.diagnosis.messages = {
      "hook: --fast-data: the DataLoader of train.py:10 stays as it is: its dataset has a transform that is "
      "none of torchvision's; name it here"};
  const std::string text = ToTerminal(sample.diagnosis, {80, false, true}, {});
  EXPECT_THAT(text, HasSubstr("\n  ! hook: --fast-data"));
  EXPECT_THAT(text, HasSubstr("\n    "));
  EXPECT_THAT(text, HasSubstr("name it here\n"));
}

TEST(TerminalTest, TheStageThatTheRunIsNamedAfterIsNotRepeated) {
  testing::Sample sample = testing::InputBound();
  sample.diagnosis.stage = "train";
  for (const char* id : {"2026-11-21-0110-train", "2026-11-21-0110-train-2"}) {
    sample.diagnosis.run_id = id;
    EXPECT_THAT(ToTerminal(sample.diagnosis, {80, false, true}, {}), Not(HasSubstr("stage train"))) << id;
  }
  sample.diagnosis.run_id = "exp-7";
  EXPECT_THAT(ToTerminal(sample.diagnosis, {80, false, true}, {}), HasSubstr("stage train"));
}

TEST(TerminalTest, StagesFollowEachOther) {
  const std::vector<diagnose::Diagnosis> stages = {testing::NoTraining().diagnosis,
                                                   testing::InputBound().diagnosis};
  const std::string text = ToTerminal(stages, {100, false, true}, {"run.html", ""});
  EXPECT_LT(text.find("No training seen"), text.find("The GPU waits for data"));
  EXPECT_EQ(text.find("run.html"), text.rfind("run.html"));
}

TEST(TerminalTest, AFileIsNotATerminal) {
  const UniqueFd file(open("/dev/null", O_WRONLY | O_CLOEXEC));
  const TerminalStyle style = StyleFor(file.get());
  EXPECT_FALSE(style.color);
  EXPECT_EQ(style.width, 100);
}

class PseudoTerminal {
 public:
  PseudoTerminal() : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    grantpt(master_.get());
    unlockpt(master_.get());
    slave_.reset(open(ptsname(master_.get()), O_RDWR | O_NOCTTY));
  }
  int fd() const { return slave_.get(); }

 private:
  UniqueFd master_;
  UniqueFd slave_;
};

TEST(TerminalTest, ATerminalHasColoursUnlessNoColorIsSet) {
  const PseudoTerminal terminal;
  ASSERT_GE(terminal.fd(), 0);
  setenv("TERM", "xterm-256color", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(StyleFor(terminal.fd()).color);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(StyleFor(terminal.fd()).color);
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(StyleFor(terminal.fd()).color);
}

TEST(TerminalTest, UnicodeFollowsTheLocale) {
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(StyleFor(-1).unicode);
  setenv("LC_ALL", "de_DE.UTF-8", 1);
  EXPECT_TRUE(StyleFor(-1).unicode);
  setenv("LC_ALL", "", 1);  // empty counts as unset
  setenv("LC_CTYPE", "C.utf8", 1);
  EXPECT_TRUE(StyleFor(-1).unicode);
}

}  // namespace
}  // namespace fullbore::report
