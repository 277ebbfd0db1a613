#include "explain/diagnose/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/print.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/compare_commands.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "cli/traces.h"
#include "explain/analyze/trace_diff.h"
#include "explain/diagnose/baseline.h"
#include "explain/diagnose/diagnose.h"
#include "record/run_reader.h"
#include "report/compared_page.h"
#include "report/compared_text.h"
#include "report/json.h"

namespace fullbore::cli {

namespace {

using diagnose::Change;
using diagnose::Comparison;
using diagnose::Diagnosis;

constexpr size_t kMaxRows = 8;  // of a kind, in the terminal; --json has all
constexpr int kMaxLabelColumns = 40;
constexpr int kMostStarts = 50;  // of a baseline: each is read whole

// Known by their beginnings.
const ResultFormat kMarkdownResult = {
    "a comparison in Markdown",
    [](std::string_view head) { return head.starts_with(report::kComparedTitle); }, false};
const ResultFormat kJunitResult = {
    "JUnit XML of a comparison",
    [](std::string_view head) { return head.find(report::kJunitMark) != std::string_view::npos; }, false};

struct Flags {
  std::string before, after;
  std::vector<std::string> others;
  std::vector<std::string> fresh;  // --new: what the others, one baseline, are compared with
  CommandsFlags commands;
  std::vector<std::string> fail_if;
  ResultFile json{"--json", kJsonResult}, csv{"--csv", kCsvResult}, html{"--html", kHtmlResult},
      markdown{"--markdown", kMarkdownResult}, junit{"--junit", kJunitResult};
  bool force = false;

  std::vector<std::string> recordings() const {
    std::vector<std::string> all = {before, after};
    all.insert(all.end(), others.begin(), others.end());
    all.insert(all.end(), fresh.begin(), fresh.end());
    return all;
  }

  const std::string& directory() const { return commands.trial.directory; }
};

// One side of the comparison; what is in a trace besides its diagnosis.
struct Side {
  Diagnosis diagnosis;
  std::optional<double> undisturbed;  // how many times as fast its steps were that nothing disturbed
  std::optional<diagnose::ShareNoise> noise;
  std::optional<analyze::TraceSum> sum;
};

void PrintChanges(const char* title, const std::vector<Change>& changes) {
  if (changes.empty()) return;
  Print(stdout, "\n  {}\n", title);
  // Labels and values side by side where both have room, else the values below.
  int label_columns = 0;
  for (size_t i = 0; i < std::min(changes.size(), kMaxRows); ++i)
    label_columns = std::max(label_columns, Columns(Printable(changes[i].what, LocaleIsUtf8())));
  label_columns = std::min({label_columns, kMaxLabelColumns, OutputColumns() / 2});
  for (size_t i = 0; i < std::min(changes.size(), kMaxRows); ++i) {
    const Change& change = changes[i];
    const std::string from = change.before && change.before_text.empty()
                                 ? FormatQuantity(*change.before, change.unit)
                                 : Printable(change.before_text, LocaleIsUtf8());
    const std::string to = change.after && change.after_text.empty()
                               ? FormatQuantity(*change.after, change.unit)
                               : Printable(change.after_text, LocaleIsUtf8());
    const std::string label = Printable(change.what, LocaleIsUtf8());
    const bool noise = change.move && !change.move->IsMoreThanNoise();
    const std::string values = fmt::format("{} -> {}{}", from.empty() ? "-" : from, to.empty() ? "-" : to,
                                           noise ? ", within the noise" : "");
    const bool beside =
        Columns(label) <= label_columns && 4 + label_columns + 2 + Columns(values) <= OutputColumns();
    if (beside) {
      Print(stdout, "    {}  {}\n", Pad(label, label_columns), values);
    } else {
      PrintWrapped(label, 4, 4);
      PrintWrapped(values, 6, 6);
    }
  }
  if (changes.size() > kMaxRows) Print(stdout, "    and {} more: --json FILE\n", changes.size() - kMaxRows);
}

// What became of the prediction.
std::string OutcomeOf(const Comparison& comparison) {
  switch (comparison.prediction) {
    case diagnose::Prediction::kHeld:
      return "held";
    case diagnose::Prediction::kMissed:
      return "not what was measured";
    case diagnose::Prediction::kTooNoisy:
      return "too noisy to tell, or too few steps";
    case diagnose::Prediction::kAnotherChange:
      return fmt::format("not tested: another change was made ({})",
                         fmt::join(comparison.other_changes, ", "));
    case diagnose::Prediction::kNotTested:
    case diagnose::Prediction::kNone:
      return "not tested: that change was not made";
  }
  return "";
}

// What stands behind the figures where they are of several starts.
void PrintStarts(const Comparison& comparison) {
  if (comparison.starts == 1) return;
  PrintWrapped(
      fmt::format(
          "the ratio is that of the means of {} starts and of {} new, with what starts differ by; all else is "
          "of the starts in the middle",
          comparison.starts, comparison.new_starts),
      2, 4);
  if (const auto& pace = comparison.undisturbed)
    PrintWrapped(
        fmt::format("steps that nothing disturbed: {:.3f} of their pace ({:.3f} to {:.3f} at 95 %), {}",
                    pace->value, pace->low, pace->high,
                    pace->high < 1 || pace->low > 1 ? "outside the noise" : "within the noise"),
        2, 4);
}

void PrintComparison(const Diagnosis& before, const Diagnosis& after, const Comparison& comparison) {
  PrintWrapped(fmt::format("fullbore  {} -> {}", before.run_id, after.run_id), 0, 2);
  Print(stdout, "\n");
  if (comparison.rate_before <= 0 || comparison.rate_after <= 0) {
    PrintWrapped(fmt::format("no throughput to compare: {} saw no training step",
                             (comparison.rate_before <= 0 ? before : after).run_id),
                 2, 4);
  } else {
    const bool faster = comparison.speedup >= 1;
    const double times = faster ? comparison.speedup : 1 / comparison.speedup;
    const std::string certainty =
        comparison.interval_known
            ? fmt::format(" ({:.2f} to {:.2f} at 95 %), {}", comparison.speedup_low, comparison.speedup_high,
                          comparison.significant ? "outside the noise" : "within the noise")
            : ", too few steps to tell it from noise";
    PrintWrapped(fmt::format("{} {} -> {} {}: {:.2f}x {}{}", FormatCount(comparison.rate_before),
                             comparison.rate_unit, FormatCount(comparison.rate_after), comparison.rate_unit,
                             times, faster ? "as fast" : "slower", certainty),
                 2, 4);
    PrintStarts(comparison);
  }
  if (comparison.predicted && comparison.predicted->expected > 1.005) {
    PrintWrapped(fmt::format("predicted for {}: {:.2f}x ({:.2f} to {:.2f}): {}", comparison.advised,
                             comparison.predicted->expected, comparison.predicted->low,
                             comparison.predicted->high, OutcomeOf(comparison)),
                 2, 4);
  }
  PrintChanges("shares of the step", comparison.shares);
  PrintChanges("logged by the script", comparison.logged);
  PrintChanges("facts", comparison.facts);
  PrintChanges("resources (means)", comparison.resources);
  for (const std::string& id : comparison.findings_gone) Print(stdout, "\n  gone: {}", id);
  for (const std::string& id : comparison.findings_new) Print(stdout, "\n  new:  {}", id);
  if (!comparison.findings_gone.empty() || !comparison.findings_new.empty()) Print(stdout, "\n");
}

Result<Side> Load(const std::string& directory, const std::string& word) {
  Side side;
  if (MeansTraces({word})) {
    side.sum.emplace();
    ReadingLine line;
    ingest::TraceOptions options = TraceOptionsFor(&line, false);
    options.look = [&](const timeline::DeviceTrace& trace) { side.sum->Add(trace); };
    const auto recording = ingest::ReadTraces({word}, options);
    if (!recording) return recording.error();
    side.diagnosis = diagnose::Diagnose(*recording);
    side.noise = diagnose::ShareNoiseOf(*recording);
    return side;
  }
  const auto path = FindRun(directory, word);
  if (!path) return path.error();
  const auto recording = record::ReadRun(*path);
  if (!recording) return recording.error();
  side.diagnosis = diagnose::Diagnose(*recording);
  side.noise = diagnose::ShareNoiseOf(*recording);
  side.undisturbed = diagnose::GainUndisturbed(*recording, side.diagnosis);
  return side;
}

void PrintDiff(const analyze::TraceSum& before, const analyze::TraceSum& after) {
  const int columns = OutputColumns();
  const analyze::Table diff = analyze::DiffOf(before, after);
  analyze::Table changed{diff.columns, {}, {}};
  for (const auto& row : diff.rows) {
    if (std::get<std::string>(row[3]) != "same") changed.rows.push_back(row);
  }
  Print(stdout, "\n  device time by class\n");
  PrintLaidOut(stdout,
               analyze::ToText(analyze::DiffOfClasses(before, after), kMaxRows * 2, columns, LocaleIsUtf8()));
  Print(stdout, "\n  kernels, copies and operators that changed most\n");
  PrintLaidOut(stdout, analyze::ToText(changed, kMaxRows * 2, columns, LocaleIsUtf8()));
}

// How many times as fast the second is, where both recordings can be judged and say it with an interval.
std::optional<tune::Proof::Gain> GainOf(const Side& before, const Side& after, const Comparison& comparison) {
  const bool can_be_judged = before.diagnosis.fitness.CanBeJudged() && after.diagnosis.fitness.CanBeJudged();
  if (!can_be_judged || !comparison.interval_known) return std::nullopt;
  return tune::Proof::Gain{comparison.speedup, comparison.speedup_low, comparison.speedup_high};
}

// What the conditions are held against. Recordings that cannot be judged say nothing.
tune::MeasuredChange ChangeMeasured(const Side& before, const Side& after, const Comparison& comparison) {
  if (!before.diagnosis.fitness.CanBeJudged() || !after.diagnosis.fitness.CanBeJudged()) return {};
  tune::MeasuredChange measured{
      GainOf(before, after, comparison),
      diagnose::ShareMovesOf(before.diagnosis, before.noise, after.diagnosis, after.noise),
      {}};
  if (const auto& pace = comparison.undisturbed)
    measured.undisturbed = tune::Proof::Gain{pace->value, pace->low, pace->high};
  return measured;
}

void Answer(const std::vector<tune::FailIf>& conditions, const tune::MeasuredChange& measured, size_t run,
            report::Compared& compared) {
  using Outcome = report::ConditionAnswer::Outcome;
  const std::vector<std::string> holding = tune::WhatHolds(conditions, measured);
  for (const tune::FailIf& condition : conditions) {
    const bool holds = std::ranges::find(holding, condition.text) != holding.end();
    const Outcome outcome = holds                                ? Outcome::kFailed
                            : tune::IsKnown(condition, measured) ? Outcome::kPassed
                                                                 : Outcome::kUnknown;
    compared.conditions.push_back({run, condition.text, outcome});
  }
}

struct Comparing {
  std::vector<Side> sides;
  report::Compared compared;
  std::vector<tune::MeasuredChange> measured;  // of all but the first
};

Comparing CompareAll(std::vector<Side> sides, const std::vector<tune::FailIf>& conditions) {
  Comparing all{std::move(sides), {}, {}};
  const Side& first = all.sides.front();
  for (size_t i = 0; i < all.sides.size(); ++i) {
    const Side& side = all.sides[i];
    all.compared.runs.push_back(side.diagnosis);
    if (i == 0) continue;
    const auto moves = diagnose::ShareMovesOf(first.diagnosis, first.noise, side.diagnosis, side.noise);
    all.compared.against_first.push_back(diagnose::Compare(first.diagnosis, side.diagnosis, moves));
    all.measured.push_back(ChangeMeasured(first, side, all.compared.against_first.back()));
    Answer(conditions, all.measured.back(), i, all.compared);
  }
  return all;
}

// The start of the middle throughput stands for all of them in what is no throughput: shares, facts, findings.
size_t MiddleOf(const std::vector<Side>& starts) {
  std::vector<size_t> order(starts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return starts[i].diagnosis.steps_per_s; });
  return order[order.size() / 2];
}

// As many times as fast as the first of them.
std::vector<double> ThroughputsOf(const std::vector<Side>& sides, const Diagnosis& first) {
  std::vector<double> times;
  for (const Side& side : sides) times.push_back(diagnose::Compare(first, side.diagnosis).speedup);
  return times;
}

// Nothing where one of them is not known: the others alone would be another choice of starts.
std::vector<double> PacesOf(const std::vector<Side>& sides, const std::vector<double>& throughputs) {
  std::vector<double> paces;
  for (size_t i = 0; i < sides.size(); ++i) {
    if (!sides[i].undisturbed) return {};
    paces.push_back(throughputs[i] * *sides[i].undisturbed);
  }
  return paces;
}

// New starts of a program against those before.
Comparing CompareStarts(std::vector<Side> before, std::vector<Side> after,
                        const std::vector<tune::FailIf>& conditions) {
  const Diagnosis first = before.front().diagnosis;
  const diagnose::Starts throughputs{ThroughputsOf(before, first), ThroughputsOf(after, first)};
  const diagnose::Starts paces{PacesOf(before, throughputs.before), PacesOf(after, throughputs.after)};
  std::vector<Side> middles;
  middles.push_back(std::move(before[MiddleOf(before)]));
  middles.push_back(std::move(after[MiddleOf(after)]));
  Comparing all = CompareAll(std::move(middles), {});
  Comparison& comparison = all.compared.against_first.front();
  diagnose::HoldAgainstStarts(throughputs, paces, comparison);
  all.measured.front() = ChangeMeasured(all.sides[0], all.sides[1], comparison);
  Answer(conditions, all.measured.front(), 1, all.compared);
  return all;
}

// Recordings that cannot be judged tell nothing of what starts differ by.
void LeaveOutUnfit(std::vector<Side>& starts) {
  const size_t unfit = std::erase_if(starts, [](const Side& side) {
    return !side.diagnosis.fitness.CanBeJudged() || side.diagnosis.steps_per_s <= 0;
  });
  if (unfit > 0)
    Print(stderr, "fullbore compare: {} of the recordings cannot be judged, and are left out\n", unfit);
}

bool AreTwoTraces(const std::vector<Side>& sides) {
  return sides.size() == 2 && sides[0].sum && sides[1].sum;
}

nlohmann::ordered_json JsonOf(const Comparing& all, bool wants_conditions) {
  if (all.sides.size() > 2) return report::ToJson(all.compared);
  nlohmann::ordered_json json =
      report::ToJson(all.sides[0].diagnosis, all.sides[1].diagnosis, all.compared.against_first.front());
  if (wants_conditions) json["failed_if"] = all.compared.FailedIf();
  if (AreTwoTraces(all.sides))
    json["trace_diff"] = analyze::ToJson(analyze::DiffOf(*all.sides[0].sum, *all.sides[1].sum));
  return json;
}

Result<void> WriteResults(Flags& flags, const Comparing& all) {
  Result<void> written;
  if (flags.json.wanted()) written = WriteJson(flags.json, JsonOf(all, !flags.fail_if.empty()));
  if (written && flags.csv.wanted())
    written = flags.csv.Write(analyze::ToCsv(analyze::DiffOf(*all.sides[0].sum, *all.sides[1].sum)));
  if (written && flags.html.wanted()) written = flags.html.Write(report::ToHtml(all.compared));
  if (written && flags.markdown.wanted())
    written = flags.markdown.Write(report::ComparedAsMarkdown(report::TableOf(all.compared)));
  if (written && flags.junit.wanted()) written = flags.junit.Write(report::ComparedAsJunit(all.compared));
  return written;
}

void PrintAll(const Comparing& all) {
  if (all.sides.size() > 2) {
    PrintLaidOut(stdout,
                 report::ComparedForTerminal(report::TableOf(all.compared), OutputColumns(), LocaleIsUtf8()));
    return;
  }
  PrintComparison(all.sides[0].diagnosis, all.sides[1].diagnosis, all.compared.against_first.front());
  if (AreTwoTraces(all.sides)) PrintDiff(*all.sides[0].sum, *all.sides[1].sum);
}

// A condition that holds for one of them fails all.
int StatusOfAll(const Comparing& all, const std::vector<tune::FailIf>& conditions) {
  int status = 0;
  for (const tune::MeasuredChange& measured : all.measured)
    status = std::max(status, StatusOfConditions(conditions, measured));
  return status;
}

Result<std::vector<Side>> LoadAll(const Flags& flags) {
  std::vector<Side> sides;
  for (const std::string& word : flags.recordings()) {
    auto side = Load(flags.directory(), word);
    if (!side) return side.error();
    sides.push_back(std::move(*side));
  }
  return sides;
}

Error TooFewStarts() {
  return {ErrorCode::kInvalidArgument,
          fmt::format("a baseline is {} recordings or more, and --new one or more, that can be judged",
                      diagnose::kFewestStarts),
          "record the unchanged program some more times: fewer do not show what its starts differ by"};
}

std::vector<Side> TakeLast(std::vector<Side>& sides, size_t count) {
  std::vector<Side> last;
  for (size_t i = sides.size() - count; i < sides.size(); ++i) last.push_back(std::move(sides[i]));
  sides.resize(sides.size() - count);
  return last;
}

int CompareRecordings(Flags& flags, const std::vector<tune::FailIf>& conditions) {
  const InputFiles inputs = InputsNamed(flags.directory(), flags.recordings());
  const auto results = {&flags.json, &flags.csv, &flags.html, &flags.markdown, &flags.junit};
  if (auto judged = JudgeResults(results, inputs, flags.force, flags.directory()); !judged)
    return Fail(judged.error(), kExitUsage);
  auto sides = LoadAll(flags);
  if (!sides) return Fail(sides.error(), StatusOf(sides.error()));
  if (flags.csv.wanted() && !AreTwoTraces(*sides)) {
    return Fail({ErrorCode::kInvalidArgument, "--csv lists the kernels of two traces, and these are others",
                 "--json has what differs between runs"},
                kExitUsage);
  }
  std::vector<Side> fresh = TakeLast(*sides, flags.fresh.size());
  if (!flags.fresh.empty()) {
    LeaveOutUnfit(*sides);
    LeaveOutUnfit(fresh);
    if (sides->size() < diagnose::kFewestStarts || fresh.empty()) return Fail(TooFewStarts(), kExitFailure);
  }
  const Comparing all = fresh.empty() ? CompareAll(std::move(*sides), conditions)
                                      : CompareStarts(std::move(*sides), std::move(fresh), conditions);
  if (auto written = WriteResults(flags, all); !written) return Fail(written.error(), kExitFailure);
  if (!AnyToStandardOutput({&flags.json, &flags.csv, &flags.html, &flags.markdown, &flags.junit}))
    PrintAll(all);
  return StatusOfAll(all, conditions);
}

// What only recordings have, asked of two commands.
std::optional<Error> AsksOfRecordings(const Flags& flags, const std::vector<tune::FailIf>& conditions) {
  for (const ResultFile* file : {&flags.csv, &flags.html, &flags.markdown, &flags.junit}) {
    if (file->wanted())
      return Error{ErrorCode::kInvalidArgument, file->option + " is of recordings, and these are commands",
                   "fullbore compare of two of their trials, which are runs"};
  }
  for (const tune::FailIf& condition : conditions) {
    if (condition.IsOfShare())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--fail-if '{}' is of recordings, and these are commands", condition.text),
                   "of commands the speed alone is measured: 'samples_per_s < -3%'"};
  }
  return std::nullopt;
}

int CompareIt(Flags& flags, const Invocation& invocation) {
  const auto conditions = tune::ParseFailIf(flags.fail_if);
  if (!conditions) return Fail(conditions.error(), kExitUsage);
  const bool names_recordings = !flags.before.empty();
  if (flags.fresh.empty() && flags.others.size() > report::kMostCompared - report::kFewestCompared)
    return Fail({ErrorCode::kInvalidArgument, "compare takes two to eight recordings",
                 "compare A B C ... --new RUN takes more, as starts of one program"},
                kExitUsage);
  if (names_recordings && flags.commands.wanted()) {
    return Fail(
        {ErrorCode::kInvalidArgument, "compare takes two to eight runs or traces, or two commands",
         "fullbore compare A B, --baseline CMD --candidate CMD, --at COMMIT -- CMD, or --set NAME=VALUE -- CMD"},
        kExitUsage);
  }
  if (names_recordings) return CompareRecordings(flags, *conditions);
  if (const auto refused = AsksOfRecordings(flags, *conditions)) return Fail(*refused, kExitUsage);
  return CompareCommands(flags.commands, *conditions, flags.json, flags.force, invocation);
}

Handler Define(CLI::App& app, const Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  app.add_option(
      "A", flags->before,
      "The run before (its id, the beginning of one, or a run file), or a trace, or a directory of "
      "the traces of its ranks");
  app.add_option("B", flags->after, "The run or trace after");
  app.add_option("OTHERS", flags->others, "Up to six more, each compared with the first; up to 48 with --new")
      ->expected(0, kMostStarts - static_cast<int>(report::kFewestCompared));
  app.add_option(
         "--new", flags->fresh,
         "The recordings before are one program, started several times (three or more): compare these\n"
         "runs, one or several starts, with them and with what they differ by themselves")
      ->type_name("RUN")
      ->expected(1, kMostStarts);
  app.add_option(
         "--fail-if", flags->fail_if,
         "Exit with status 3 where this holds, for scripts: slower, 'slower 3%', not-faster,\n"
         "'not-faster 10%', not-proven, 'samples_per_s < -3%', of recordings also 'data_wait > +3pt'\n"
         "and the like; may be given several times")
      ->type_name("CONDITION")
      ->allow_extra_args(false);
  AddCommandsFlags(app, flags->commands);
  AddResult(app, flags->json, "Write the comparison to this file");
  AddResult(app, flags->html, "Recordings: write the comparison as a page to this file");
  AddResult(app, flags->markdown, "Recordings: write it as Markdown, for a pull request");
  AddResult(app, flags->junit, "Recordings: write what --fail-if says as JUnit XML, for CI");
  AddResult(app, flags->csv, "Two traces: write every kernel, copy and operator of both to this file");
  AddForce(app, flags->force);
  app.callback([flags] {
    if (!flags->commands.wanted() && flags->after.empty())
      throw CLI::RequiredError(flags->before.empty() ? "A" : "B");
  });
  return [flags, &invocation] { return CompareIt(*flags, invocation); };
}

}  // namespace

const Subcommand kCompare = {
    "compare", "Say what changed between runs, traces or commands, and whether it is more than noise",
    "fullbore compare 2026-11-21-0915-train last\n"
    "  fullbore compare base four-workers eight-workers --html compared.html\n"
    "  fullbore compare base new --fail-if 'samples_per_s < -3%' --fail-if 'data_wait > +3pt' --junit ci.xml\n"
    "  fullbore compare main1 main2 main3 main4 main5 --new this1 this2 this3 --fail-if 'samples_per_s < -3%'\n"
    "  fullbore compare before.json.gz after.json.gz\n"
    "  fullbore compare --baseline 'python train.py' --candidate 'python train.py --fused'\n"
    "  fullbore compare --set num_workers=4 -- python train.py\n"
    "  fullbore compare --at main --fail-if 'slower 3%' -- python train.py",
    Define};

}  // namespace fullbore::cli
