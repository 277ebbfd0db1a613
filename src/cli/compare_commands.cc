#include "cli/compare_commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/command_line.h"
#include "base/print.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/results.h"
#include "record/run_reader.h"
#include "tune/answer/advice.h"
#include "tune/proof/claim.h"
#include "tune/proof/commit.h"
#include "tune/proof/contest.h"
#include "tune/proof/trial_turns.h"
#include "tune/trial/budget.h"

namespace fullbore::cli {

namespace {

using tune::Contest;
using tune::Ending;
using tune::Side;
using tune::Standing;

struct Contestant {
  std::vector<std::string> words;  // of the command, as it is started
  std::string shown;               // as the user gave it, without its secrets
  std::string commit;              // empty: what is there
  tune::Settings settings;         // made in it from outside
};

struct Contestants {
  Contestant baseline, candidate;
  std::optional<tune::Repository> repository;
  std::string state;  // of the working tree, where the candidate is what is there

  const Contestant& operator[](Side side) const { return side == Side::kBaseline ? baseline : candidate; }
};

// ---- what is compared ----

Result<Contestant> Given(const std::string& flag, const std::string& text) {
  auto words = WordsOfCommand(text);
  if (words) return Contestant{std::move(*words), MaskSecrets(std::string_view(text)), "", {}};
  return Error{words.error().code,
               fmt::format("{} '{}': {}", flag, MaskSecrets(std::string_view(text)), words.error().text), ""};
}

Result<Contestants> TwoCommands(const CommandsFlags& flags, const Invocation& invocation) {
  if (flags.baseline.empty() || flags.candidate.empty() || !flags.at.empty() || !flags.settings.empty() ||
      invocation.has_separator) {
    return Error{
        ErrorCode::kInvalidArgument,
        "two commands are given by --baseline and --candidate, and by nothing else",
        "one command on two commits: --at COMMIT -- CMD; with other settings: --set NAME=VALUE -- CMD"};
  }
  auto baseline = Given("--baseline", flags.baseline), candidate = Given("--candidate", flags.candidate);
  if (!baseline) return baseline.error();
  if (!candidate) return candidate.error();
  return Contestants{std::move(*baseline), std::move(*candidate), std::nullopt, ""};
}

// The command at a commit against what is there now, or against the command at another one.
Result<Contestants> TwoCommits(const CommandsFlags& flags, const Invocation& invocation) {
  if (flags.at.size() > 2 || invocation.command.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 invocation.command.empty() ? "--at: no command" : "--at names one commit, or two",
                 "as in: fullbore compare --at main -- python train.py"};
  }
  auto repository = tune::Repository::Find();
  if (!repository) return repository.error();
  Contestants contestants;
  const std::string shown = tune::CommandText(invocation.command, {});
  contestants.baseline = contestants.candidate = {invocation.command, shown, "", {}};
  Contestant* each = &contestants.baseline;
  for (const std::string& name : flags.at) {
    auto commit = repository->CommitNamed(name);
    if (!commit) return commit.error();
    each->words = repository->CommandAt(*commit, invocation.command);
    each->commit = std::move(*commit);
    each = &contestants.candidate;
  }
  auto state = repository->State();
  if (!state) return state.error();
  const bool is_tree = contestants.candidate.commit.empty();
  const std::string& other = is_tree ? *state : contestants.candidate.commit;
  if (other == contestants.baseline.commit) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("nothing that git knows differs between {} and {}", flags.at.front(),
                             is_tree ? "the working tree" : flags.at.back()),
                 "name the commit before the change, or give two commands: --baseline, --candidate"};
  }
  if (is_tree) contestants.state = std::move(*state);
  contestants.repository = std::move(*repository);
  return contestants;
}

// The command as it is against the same with settings.
Result<Contestants> TwoSettings(const CommandsFlags& flags, const Invocation& invocation) {
  if (invocation.command.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--set: no command",
                 "as in: fullbore compare --set num_workers=2 -- python train.py"};
  }
  const std::string shown = tune::CommandText(invocation.command, {});
  Contestants contestants;
  contestants.baseline = contestants.candidate = {invocation.command, shown, "", {}};
  for (const std::string& text : flags.settings) {
    auto setting = tune::ParseSetting(text);
    if (!setting) return setting.error();
    if (tune::HasPlaceholder(invocation.command, setting->first)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--set {0}: the command as it is has no value for {{{0}}}", setting->first),
                   "give two commands: --baseline, --candidate"};
    }
    if (auto legal = CheckSetting(invocation.command, setting->first, setting->second); !legal)
      return legal.error();
    contestants.candidate.settings.insert_or_assign(std::move(setting->first), std::move(setting->second));
  }
  return contestants;
}

Result<Contestants> ContestantsOf(const CommandsFlags& flags, const Invocation& invocation) {
  if (!flags.baseline.empty() || !flags.candidate.empty()) return TwoCommands(flags, invocation);
  if (!flags.at.empty() && !flags.settings.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--at compares two commits, and --set two settings: not both",
                 ""};
  }
  return flags.at.empty() ? TwoSettings(flags, invocation) : TwoCommits(flags, invocation);
}

// As the trials' protection has been found: a commit is checked out in a view, or not at all.
Result<void> CheckView(const CommandsFlags& flags, const tune::MeasureOptions& options) {
  const isolate::Found& found = options.shelter.found;
  if (flags.at.empty() || found.protection == isolate::Protection::kView) return {};
  return Error{
      ErrorCode::kUnavailable,
      "--at: trials get no private view of the file system here, so that no other commit can be checked out "
      "for one",
      fmt::format(
          "{}: {}; or check it out in another directory, and give two commands: --baseline 'cd THERE && ...'",
          found.why_no_view, found.how_to_allow)};
}

// ---- the trials ----

std::string Gained(const tune::Proof::Gain& gain) { return tune::GainText(gain, " at 95 %"); }

std::string Duration(double seconds) {
  return FormatDuration(static_cast<int64_t>(std::max(0.0, seconds) * 1e9));
}

class MachineTrack : public tune::Track {
 public:
  MachineTrack(const Contestants& contestants, tune::MeasureOptions options, double budget_s, bool whole_runs)
      : contestants_(contestants),
        options_(std::move(options)),
        budget_(budget_s),
        turns_(budget_, !whole_runs && options_.metric.empty(), SayOnError) {}

  std::optional<tune::Made> Try(Side side) override;
  double left_s() const override { return error_ || interrupted() ? -1 : budget_.left_s(); }
  void OnPair(const tune::Proof& so_far) override;

  bool takes_turns() const { return turns_.possible(); }
  bool interrupted() const { return budget_.interrupted(); }
  const tune::Budget& budget() const { return budget_; }
  const std::optional<Error>& error() const { return error_; }
  // Why the trial that the budget ended could not be measured; empty where it ended none.
  const std::string& cut_off() const { return cut_off_; }

 private:
  tune::MeasureOptions OptionsOf(Side side) const;
  tune::Contender ContenderOf(Side side) const { return {OptionsOf(side), contestants_[side].settings, {}}; }
  std::optional<tune::Made> TryInTurns(Side side);
  // Says what it made; nothing where the budget cut it off.
  std::optional<tune::Made> Judged(Side side, tune::Trial trial);

  const Contestants& contestants_;
  tune::MeasureOptions options_;
  tune::Budget budget_;
  tune::TrialTurns turns_;
  std::optional<Error> error_;
  std::string cut_off_;
  int count_ = 0;
  size_t whole_runs_ = 0;
  std::optional<tune::PairOfTrials> pair_;  // of which one was asked for
};

tune::MeasureOptions MachineTrack::OptionsOf(Side side) const {
  tune::MeasureOptions options = options_;
  options.command = contestants_[side].words;
  options.name = options.tags[kCompareTag] = Name(side);
  return options;
}

// Nothing where they cannot take turns; from then on there are whole runs.
std::optional<tune::Made> MachineTrack::TryInTurns(Side side) {
  if (pair_) {
    const tune::PairOfTrials pair = *std::exchange(pair_, std::nullopt);
    return Judged(side, side == Side::kBaseline ? pair.before : pair.after);
  }
  Print(stderr, "fullbore: trials {} and {}: both, in turns; {} left\n", count_ + 1, count_ + 2,
        Duration(budget_.left_s()));
  auto turns = turns_.Take(ContenderOf(Side::kBaseline), ContenderOf(Side::kCandidate));
  if (!turns) error_ = turns.error();
  if (!turns || interrupted()) return std::nullopt;
  if (turns->pair) {
    count_ += 2;
    pair_ = std::move(turns->pair);
    return Judged(side, side == Side::kBaseline ? pair_->before : pair_->after);
  }
  if (turns->failed) return Judged(turns->failed->side, turns->failed->trial);
  if (budget_.IsOver())
    cut_off_ = fmt::format("both: {} ended before their rates were known", budget_.text());
  return std::nullopt;
}

std::optional<tune::Made> MachineTrack::Try(Side side) {
  if (takes_turns() || pair_) {
    if (auto trial = TryInTurns(side)) return trial;
    if (interrupted() || error_ || !cut_off_.empty()) return std::nullopt;
  }
  tune::MeasureOptions options = OptionsOf(side);
  const double longest = tune::LongestWholeRun(budget_.left_s(), whole_runs_++);
  const bool is_limited = longest < options.precision.most_seconds;
  if (is_limited) options.precision.most_seconds = longest;
  budget_.Limit(options);
  Print(stderr, "fullbore: trial {}: the {}, at most {}; {} left\n", ++count_, Name(side),
        Duration(options.precision.most_seconds), Duration(budget_.left_s()));
  auto measured = tune::Measure(options, contestants_[side].settings);
  if (!measured) {
    error_ = measured.error();
    return std::nullopt;
  }
  if (measured->interrupted_by) budget_.NoteInterrupt(*measured->interrupted_by);
  if (interrupted()) return std::nullopt;
  if (is_limited && measured->trial.outcome == tune::Outcome::kEndedEarly) {
    cut_off_ = fmt::format("the {}: {} leaves no time for two pairs", Name(side), budget_.text());
    return std::nullopt;
  }
  return Judged(side, std::move(measured->trial));
}

std::optional<tune::Made> MachineTrack::Judged(Side side, tune::Trial trial) {
  if (!trial.ok() && trial.steps == 0 && options_.metric.empty() && trial.outcome != tune::Outcome::kCrashed)
    trial.why += "; --metric measures a program by what it prints";
  if (!trial.ok() && trial.why.starts_with(budget_.text())) {
    cut_off_ = fmt::format("the {}: {}", Name(side), trial.why);
    return std::nullopt;
  }
  Print(stderr, "fullbore:   {}{}\n",
        trial.rate ? fmt::format("{} {}", tune::RateText(*trial.rate), trial.unit)
                   : std::string(Name(trial.outcome)),
        trial.why.empty() ? "" : ", " + MaskUrls(trial.why));
  trial.proves = true;
  return tune::Made{side, std::move(trial)};
}

void MachineTrack::OnPair(const tune::Proof& so_far) {
  if (const auto gain = so_far.gain())
    Print(stderr, "fullbore: after {} pairs: {}\n", so_far.pairs.size(), Gained(*gain));
}

// ---- the answer ----

std::string SettledBy(const Contest& contest, const MachineTrack& track) {
  return track.interrupted() ? "" : WhatWouldSettle(contest);
}

// Why no further pair was made.
std::string Ended(const Contest& contest, const MachineTrack& track) {
  if (track.interrupted()) return "interrupted";
  return contest.ending == Ending::kOver ? "budget" : std::string(Name(contest.ending));
}

std::string StandingText(const Contest& contest) {
  const auto gain = contest.proof.gain();
  switch (contest.standing()) {
    case Standing::kFaster:
      return "The candidate is faster: " + Gained(*gain) + ".";
    case Standing::kSlower:
      return "The candidate is slower: " + Gained(*gain) + ".";
    case Standing::kNotProven:
      break;
  }
  const char* what = contest.ending == Ending::kNoDifference ? "No difference: " : "Not proven: ";
  return what + (gain ? Gained(*gain) : "there are fewer than two pairs of trials") + ".";
}

// The mean of its trials that count.
std::optional<double> MeanOf(const Contest& contest, Side side) {
  double sum = 0;
  for (const tune::Proof::Pair& pair : contest.proof.pairs)
    sum += side == Side::kBaseline ? pair.before.mean : pair.after.mean;
  return contest.proof.pairs.empty() ? std::nullopt
                                     : std::optional(sum / static_cast<double>(contest.proof.pairs.size()));
}

std::string LastRun(const Contest& contest, Side side) {
  const auto trials = contest.TrialsOf(side);
  return trials.empty() ? "" : trials.back().run;
}

void PrintSide(const Contestants& contestants, const Contest& contest, Side side) {
  const Contestant& one = contestants[side];
  std::string where = one.commit.empty() ? "" : " at " + one.commit.substr(0, 12);
  if (!one.settings.empty()) where += " with " + tune::ToText(one.settings);
  if (side == Side::kCandidate && !contestants.state.empty())
    where = contestants.repository->IsClean(contestants.state)
                ? " at " + tune::Repository::CommitOf(contestants.state).substr(0, 12)
                : " in the working tree, with its changes";
  const auto mean = MeanOf(contest, side);
  PrintWrapped(fmt::format("{}: {}{}{}", Name(side), one.shown, where,
                           mean ? fmt::format(", {} {}", FormatCount(*mean), contest.unit) : ""),
               2, 4);
}

void PrintContest(const Contestants& contestants, const Contest& contest, const MachineTrack& track) {
  double seconds = 0;
  for (const tune::Made& made : contest.trials) seconds += made.trial.seconds;
  PrintWrapped(fmt::format("fullbore  {}, in {}", PairsText(contest.proof), Duration(seconds)), 0, 2);
  Print(stdout, "\n");
  for (const Side side : {Side::kBaseline, Side::kCandidate}) PrintSide(contestants, contest, side);
  Print(stdout, "\n");
  if (contest.ending == Ending::kFailed)
    PrintWrapped("Not compared: " + MaskUrls(contest.why) + ".", 2, 4);
  else
    PrintWrapped(StandingText(contest), 2, 4);
  if (!track.cut_off().empty()) PrintWrapped("The last trial, of " + track.cut_off() + ".", 2, 4);
  if (const std::string text = SettledBy(contest, track); !text.empty()) PrintWrapped(text, 2, 4);
  if (contest.proof.gain() && contest.unit == tune::kStepsPerSecond)
    PrintWrapped("in steps: it holds where a step of both takes as many samples", 2, 4);
  if (const auto losses = contest.losses()) PrintWrapped(tune::ToText(*losses), 2, 4);
  const std::string before = LastRun(contest, Side::kBaseline), after = LastRun(contest, Side::kCandidate);
  if (!before.empty() && !after.empty())
    PrintWrapped(fmt::format("what else differs: fullbore compare {} {}", before, after), 2, 4);
  if (track.interrupted()) PrintWrapped("interrupted", 2, 4);
}

nlohmann::ordered_json SideJson(const Contestants& contestants, const Contest& contest, Side side) {
  nlohmann::ordered_json json = {{"command", contestants[side].shown}};
  if (!contestants[side].commit.empty()) json["commit"] = contestants[side].commit;
  if (!contestants[side].settings.empty()) json["settings"] = tune::ToJson(contestants[side].settings);
  json["rate"] = tune::OrNull(MeanOf(contest, side));
  return json;
}

// As the last of the trials recorded it; null where none did.
nlohmann::ordered_json MachineOf(const Contest& contest, const std::string& runs) {
  if (contest.trials.empty() || contest.trials.back().trial.run.empty()) return {};
  const auto path = FindRun(runs, contest.trials.back().trial.run);
  const auto run = path ? record::ReadRunSummary(*path) : Result<record::RunSummary>(path.error());
  if (!run) return {};
  nlohmann::ordered_json machine = nlohmann::ordered_json::object();
  for (const auto& [name, value] : run->machine) machine[name] = value;
  return machine;
}

// What git knows of the place where the commands were started: the commit, and whether files differ from it. Null outside
// of a repository.
nlohmann::ordered_json DirectoryJson() {
  const auto repository = tune::Repository::Find();
  if (!repository) return {};
  const auto state = repository->State();
  if (!state) return {};
  return {{"commit", tune::Repository::CommitOf(*state)}, {"changed", !repository->IsClean(*state)}};
}

nlohmann::ordered_json ContestJson(const Contestants& contestants, const Contest& contest,
                                   const MachineTrack& track, const std::vector<std::string>& holding,
                                   const std::string& runs) {
  nlohmann::ordered_json json = {{"schema", "fullbore.contest/1"},
                                 {"baseline", SideJson(contestants, contest, Side::kBaseline)},
                                 {"candidate", SideJson(contestants, contest, Side::kCandidate)},
                                 {"unit", nullptr}};
  if (!contest.unit.empty()) json["unit"] = contest.unit;
  const auto gain = contest.proof.gain();
  json["verdict"] = contest.ending == Ending::kFailed ? "failed" : Name(contest.standing());
  json["gain"] = gain ? tune::ToJson(*gain) : nlohmann::ordered_json();
  json["ended"] = Ended(contest, track);
  const std::string settles = SettledBy(contest, track);
  json["settled_by"] = settles.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(settles);
  const std::string why = contest.why.empty() ? track.cut_off() : contest.why;
  json["why"] = why.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(MaskUrls(why));
  json["turns"] = track.takes_turns() ? "slices" : "whole-runs";
  json["pairs"] = nlohmann::ordered_json::array();
  for (const tune::Proof::Pair& pair : contest.proof.pairs)
    json["pairs"].push_back(
        {{"baseline", pair.before.mean}, {"candidate", pair.after.mean}, {"in_slices", pair.in_slices}});
  const auto losses = contest.losses();
  json["losses"] = losses ? tune::ToJson(*losses) : nlohmann::ordered_json();
  json["claim"] = tune::ToJson(tune::ClaimOf(contest));
  json["machine"] = MachineOf(contest, runs);
  json["directory"] = DirectoryJson();
  json["failed_if"] = holding;
  json["trials"] = nlohmann::ordered_json::array();
  for (const tune::Made& made : contest.trials) {
    nlohmann::ordered_json trial = tune::ToJson(made.trial);
    trial["side"] = Name(made.side);
    json["trials"].push_back(std::move(trial));
  }
  return json;
}

// What was measured is of no use where the program changed meanwhile.
Result<void> CheckUnchanged(const Contestants& contestants) {
  if (contestants.state.empty()) return {};
  const auto state = contestants.repository->State();
  if (!state) return state.error();
  if (*state == contestants.state) return {};
  return Error{ErrorCode::kUnavailable,
               "the working tree was changed while it was measured: its trials are not of one program",
               "commit the change and name both commits: --at A --at B"};
}

int Finish(const Contestants& contestants, const Contest& contest, const MachineTrack& track,
           const std::vector<tune::FailIf>& conditions, const ResultFile& json, const std::string& runs) {
  const bool failed = contest.ending == Ending::kFailed;
  const auto gain = contest.proof.gain();
  if (!AnyToStandardOutput({&json})) PrintContest(contestants, contest, track);
  if (json.wanted()) {
    const auto holding = failed ? std::vector<std::string>() : tune::WhatHolds(conditions, {gain, {}, {}});
    const auto written = WriteJson(json, ContestJson(contestants, contest, track, holding, runs));
    if (!written) return Fail(written.error(), kExitFailure);
  }
  if (track.interrupted()) return 128 + track.budget().interrupted_by();
  if (failed) return kExitFailure;
  const int status = StatusOfConditions(conditions, {gain, {}, {}});
  return status == 0 && !gain ? kExitFailure : status;
}

}  // namespace

void AddCommandsFlags(CLI::App& app, CommandsFlags& flags) {
  app.add_option("--baseline", flags.baseline, "Measure this command instead, in one text ...")
      ->type_name("CMD");
  app.add_option("--candidate", flags.candidate,
                 "... against this one, in turns, until it is told which is faster")
      ->type_name("CMD");
  app.add_option(
         "--at", flags.at,
         "Measure the command after -- at this commit against the working tree as it is; given twice,\n"
         "the first commit against the second")
      ->type_name("COMMIT")
      ->allow_extra_args(false);
  app.add_option(
         "--set", flags.settings,
         "Measure the command after -- as it is against itself with this setting, which is made in the\n"
         "script from outside, for instance num_workers=4; several settings are made together")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--budget", flags.budget, "The time that all trials of commands may take")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_flag("--whole-runs", flags.whole_runs,
               "Never both at a time: one run after the other, for programs that must not stand still");
  AddMeasuringFlags(app, flags.trial);
}

int CompareCommands(CommandsFlags& flags, const std::vector<tune::FailIf>& conditions, ResultFile& json,
                    bool force, const Invocation& invocation) {
  const auto contestants = ContestantsOf(flags, invocation);
  if (!contestants) return Fail(contestants.error(), kExitUsage);
  const auto budget = ParsePositiveSeconds("--budget", flags.budget);
  if (!budget) return Fail(budget.error(), kExitUsage);
  InputFiles inputs = InputsOf(flags.trial, {contestants->candidate.words, true});
  inputs.AddCommand(contestants->baseline.words);
  if (auto judged = JudgeResults({&json}, inputs, force, flags.trial.directory); !judged)
    return Fail(judged.error(), kExitUsage);
  auto options = OptionsOf("compare", flags.trial, {contestants->baseline.words, true});
  if (!options) return Fail(options.error(), kExitUsage);
  if (auto safe = Protect(flags.trial, *options); !safe) return Fail(safe.error(), kExitFailure);
  if (auto view = CheckView(flags, *options); !view) return Fail(view.error(), kExitFailure);
  MachineTrack track(*contestants, *options, *budget, flags.whole_runs);
  const Contest contest = tune::Compete(tune::ThresholdsOf(conditions), track);
  if (track.error()) return Fail(*track.error(), StatusOf(*track.error()));
  if (auto unchanged = CheckUnchanged(*contestants); !unchanged) return Fail(unchanged.error(), kExitFailure);
  return Finish(*contestants, contest, track, conditions, json, flags.trial.directory);
}

int StatusOfConditions(const std::vector<tune::FailIf>& conditions, const tune::MeasuredChange& measured) {
  const std::vector<std::string> holding = tune::WhatHolds(conditions, measured);
  for (const std::string& condition : holding) Print(stderr, "fullbore: --fail-if '{}' holds\n", condition);
  if (!holding.empty()) return kExitCondition;
  const auto unknown = std::ranges::find_if(
      conditions, [&](const tune::FailIf& condition) { return !tune::IsKnown(condition, measured); });
  if (unknown == conditions.end()) return 0;
  const std::string what = unknown->IsOfShare() ? fmt::format("by how much {} changed", unknown->share)
                                                : "how fast one is against the other";
  return Fail({ErrorCode::kUnavailable, fmt::format("--fail-if: {} is not known", what), ""}, kExitFailure);
}

}  // namespace fullbore::cli
