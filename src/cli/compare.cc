#include "explain/diagnose/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/print.h"
#include "base/text.h"
#include "cli/compare_commands.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "cli/traces.h"
#include "explain/analyze/trace_diff.h"
#include "explain/diagnose/diagnose.h"
#include "record/run_reader.h"
#include "report/json.h"

namespace fullbore::cli {

namespace {

using diagnose::Change;
using diagnose::Comparison;
using diagnose::Diagnosis;

constexpr size_t kMaxRows = 8;  // of a kind, in the terminal; --json has all
constexpr int kMaxLabelColumns = 40;

struct Flags {
  std::string before, after;
  CommandsFlags commands;
  std::vector<std::string> fail_if;
  ResultFile json{"--json", kJsonResult}, csv{"--csv", kCsvResult};
  bool force = false;

  const std::string& directory() const { return commands.trial.directory; }
};

// One side of the comparison; what is in a trace besides its diagnosis.
struct Side {
  Diagnosis diagnosis;
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
    const std::string from = change.before ? FormatQuantity(*change.before, change.unit)
                                           : Printable(change.before_text, LocaleIsUtf8());
    const std::string to = change.after ? FormatQuantity(*change.after, change.unit)
                                        : Printable(change.after_text, LocaleIsUtf8());
    const std::string label = Printable(change.what, LocaleIsUtf8());
    const std::string values = fmt::format("{} -> {}", from.empty() ? "-" : from, to.empty() ? "-" : to);
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
  }
  if (comparison.predicted && comparison.predicted->expected > 1.005) {
    PrintWrapped(fmt::format("predicted for {}: {:.2f}x ({:.2f} to {:.2f}): {}", comparison.advised,
                             comparison.predicted->expected, comparison.predicted->low,
                             comparison.predicted->high, OutcomeOf(comparison)),
                 2, 4);
  }
  PrintChanges("shares of the step", comparison.shares);
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
    return side;
  }
  const auto path = FindRun(directory, word);
  if (!path) return path.error();
  const auto recording = record::ReadRun(*path);
  if (!recording) return recording.error();
  side.diagnosis = diagnose::Diagnose(*recording);
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

int CompareRecordings(Flags& flags, const std::vector<tune::FailIf>& conditions) {
  const InputFiles inputs = InputsNamed(flags.directory(), {flags.before, flags.after});
  if (auto judged = JudgeResults({&flags.json, &flags.csv}, inputs, flags.force, flags.directory()); !judged)
    return Fail(judged.error(), kExitUsage);
  const auto before = Load(flags.directory(), flags.before), after = Load(flags.directory(), flags.after);
  for (const auto* side : {&before, &after}) {
    if (!*side) return Fail(side->error(), StatusOf(side->error()));
  }
  const bool traces = before->sum && after->sum;
  if (flags.csv.wanted() && !traces) {
    return Fail({ErrorCode::kInvalidArgument, "--csv lists the kernels of two traces, and these are runs",
                 "--json has what differs between runs"},
                kExitUsage);
  }
  const Comparison comparison = diagnose::Compare(before->diagnosis, after->diagnosis);
  const auto gain = GainOf(*before, *after, comparison);
  Result<void> written;
  if (flags.json.wanted()) {
    nlohmann::ordered_json json = report::ToJson(before->diagnosis, after->diagnosis, comparison);
    if (!conditions.empty()) json["failed_if"] = tune::WhatHolds(conditions, gain);
    if (traces) json["trace_diff"] = analyze::ToJson(analyze::DiffOf(*before->sum, *after->sum));
    written = WriteJson(flags.json, json);
  }
  if (written && flags.csv.wanted())
    written = flags.csv.Write(analyze::ToCsv(analyze::DiffOf(*before->sum, *after->sum)));
  if (!written) return Fail(written.error(), kExitFailure);
  if (!AnyToStandardOutput({&flags.json, &flags.csv})) {
    PrintComparison(before->diagnosis, after->diagnosis, comparison);
    if (traces) PrintDiff(*before->sum, *after->sum);
  }
  return StatusOfConditions(conditions, gain);
}

int CompareIt(Flags& flags, const Invocation& invocation) {
  const auto conditions = tune::ParseFailIf(flags.fail_if);
  if (!conditions) return Fail(conditions.error(), kExitUsage);
  const bool names_recordings = !flags.before.empty();
  if (names_recordings && flags.commands.wanted()) {
    return Fail(
        {ErrorCode::kInvalidArgument, "compare takes two runs or traces, or two commands",
         "fullbore compare A B, --baseline CMD --candidate CMD, --at COMMIT -- CMD, or --set NAME=VALUE -- CMD"},
        kExitUsage);
  }
  if (names_recordings) return CompareRecordings(flags, *conditions);
  if (flags.csv.wanted()) {
    return Fail(
        {ErrorCode::kInvalidArgument, "--csv lists the kernels of two traces, and these are commands", ""},
        kExitUsage);
  }
  return CompareCommands(flags.commands, *conditions, flags.json, flags.force, invocation);
}

Handler Define(CLI::App& app, const Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  app.add_option(
      "A", flags->before,
      "The run before (its id, the beginning of one, or a run file), or a trace, or a directory of "
      "the traces of its ranks");
  app.add_option("B", flags->after, "The run or trace after");
  app.add_option("--fail-if", flags->fail_if,
                 "Exit with status 3 where this holds, for scripts: slower, 'slower 3%', not-faster,\n"
                 "'not-faster 10%', not-proven; may be given several times")
      ->type_name("CONDITION")
      ->allow_extra_args(false);
  AddCommandsFlags(app, flags->commands);
  AddResult(app, flags->json, "Write the comparison to this file");
  AddResult(app, flags->csv, "Traces: write every kernel, copy and operator of both to this file");
  AddForce(app, flags->force);
  app.callback([flags] {
    if (!flags->commands.wanted() && flags->after.empty())
      throw CLI::RequiredError(flags->before.empty() ? "A" : "B");
  });
  return [flags, &invocation] { return CompareIt(*flags, invocation); };
}

}  // namespace

const Subcommand kCompare = {
    "compare", "Say what changed between two runs, traces or commands, and whether it is more than noise",
    "fullbore compare 2026-11-21-0915-train last\n"
    "  fullbore compare before.json.gz after.json.gz\n"
    "  fullbore compare --baseline 'python train.py' --candidate 'python train.py --fused'\n"
    "  fullbore compare --set num_workers=4 -- python train.py\n"
    "  fullbore compare --at main --fail-if 'slower 3%' -- python train.py",
    Define};

}  // namespace fullbore::cli
