// fullbore tune: finds the settings that pay, by measuring. The flags are described below, in Define.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/exec.h"
#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/nearest.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "cli/trials.h"
#include "cli/tune_answer.h"
#include "measure/collect/run_place.h"
#include "record/run_reader.h"
#include "tune/answer/answer_json.h"
#include "tune/answer/page/page.h"
#include "tune/answer/patch.h"
#include "tune/knob/knob.h"
#include "tune/search/machine.h"
#include "tune/search/search.h"
#include "tune/search/useful_tokens.h"
#include "tune/trial/as_it_runs.h"
#include "tune/trial/kept.h"

namespace fullbore::cli {

namespace fs = std::filesystem;

namespace {

struct Flags {
  TrialFlags trial;
  std::vector<std::string> knobs, values;
  std::string objective = "throughput", within = "5%", budget = "10m", price;
  std::string apply;
  ResultFile html{"--html", kHtmlResult}, json{"--json", kJsonResult}, patch{"--patch", kDiffResult};
  bool exhaustive = false, resume = false, force = false;
};

// ---- the question ----

std::vector<std::string> KnobsThatAre(tune::Searched searched) {
  std::vector<std::string> names;
  for (const tune::Knob& knob : tune::AllKnobs()) {
    if (knob.searched == searched) names.emplace_back(knob.name);
  }
  return names;
}

std::vector<std::string> ShorterNames() {
  std::vector<std::string> names;
  for (const tune::Knob& knob : tune::AllKnobs()) {
    if (!knob.called.empty() && tune::KnobNamed(knob.called) == nullptr) names.emplace_back(knob.called);
  }
  return names;
}

Result<tune::Objective> ObjectiveNamed(const std::string& name) {
  if (name == "throughput") return tune::Objective::kThroughput;
  if (name == "tokens") return tune::Objective::kTokens;
  if (name == "cost") return tune::Objective::kCost;
  if (name == "memory") return tune::Objective::kMemory;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--objective '{}' is not one of throughput, tokens, cost and memory", name), ""};
}

Result<void> AddKnobs(const Flags& flags, tune::Question& question) {
  for (const std::string& text : flags.knobs) {
    for (const std::string_view part : Split(text, ',')) {
      const std::string name(Trim(part));
      const auto knobs = tune::KnobsCalled(name);
      if (knobs.empty()) {
        const auto meant = Nearest(name, tune::KnobsCalled("all"));
        return Error{
            ErrorCode::kInvalidArgument, fmt::format("--knobs: there is no knob '{}'", name),
            meant ? fmt::format("did you mean {}?", *meant)
                  : fmt::format("the knobs are {}, and {}, loader, all",
                                fmt::join(tune::KnobsCalled("all"), ", "), fmt::join(ShorterNames(), ", "))};
      }
      question.knobs.insert(knobs.begin(), knobs.end());
    }
  }
  if (!flags.knobs.empty() || !flags.values.empty()) return {};
  for (std::string& name : KnobsThatAre(tune::Searched::kAlways)) question.knobs.insert(std::move(name));
  question.batch_apart = true;
  return {};
}

Result<void> AddValues(const Flags& flags, const std::vector<std::string>& command,
                       tune::Question& question) {
  for (const std::string& text : flags.values) {
    auto values = tune::ParseValues(text);
    if (!values) return values.error();
    for (const auto& value : values->second) {
      if (auto legal = CheckSetting(command, values->first, value); !legal) return legal;
    }
    question.knobs.insert(values->first);
    if (tune::HasPlaceholder(command, values->first))
      question.baseline[values->first] = values->second.front();
    question.values[values->first] = std::move(values->second);
  }
  for (const tune::Knob& knob : tune::AllKnobs()) {
    const std::string name(knob.name);
    if (!tune::HasPlaceholder(command, name) || question.values.contains(name)) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the command contains {{{}}}, which has no value", name),
                 fmt::format("--set {}=... lists the values to choose from, the present one first", name)};
  }
  return {};
}

Result<tune::Question> QuestionOf(const Flags& flags, const std::vector<std::string>& command) {
  tune::Question question;
  if (auto added = AddKnobs(flags, question); !added) return added.error();
  if (auto added = AddValues(flags, command, question); !added) return added.error();
  const auto objective = ObjectiveNamed(flags.objective);
  if (!objective) return objective.error();
  question.objective = *objective;
  if (question.objective == tune::Objective::kTokens && !flags.trial.metric.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "--objective tokens counts what the model computes, not what --metric reads",
                 "leave out one of the two"};
  const auto within = ParseRatio("--within", flags.within);
  if (!within) return within.error();
  question.within = *within;
  question.exhaustive = flags.exhaustive;
  if (flags.exhaustive && question.values.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--exhaustive tries all combinations of the values of --set",
                 "for instance --set num_workers=0,1,2,4 --set batch_size=16,32"};
  }
  return question;
}

// "2.5/h", in any currency.
Result<std::optional<double>> PriceOf(const std::string& text) {
  if (text.empty()) return std::optional<double>();
  const bool per_hour = text.ends_with("/h");
  const auto price = ParseDouble(std::string_view(text).substr(0, text.size() - (per_hour ? 2 : 0)));
  if (price && *price > 0) return price;
  return Error{ErrorCode::kInvalidArgument, fmt::format("--price '{}' is not a price per hour", text),
               "for instance --price 2.5/h"};
}

// ---- applying ----

// The user's own file, where its loader is made, with the chosen settings. Paths as they are from here.
void AddPatch(const tune::Answer& answer, tune::AnswerContext& context) {
  const std::string& where = answer.known.loader_where;
  const size_t colon = where.rfind(':');
  if (!answer.recommended || colon == std::string::npos) return;
  const auto line = ParseInt(where.substr(colon + 1));
  const std::string path = where.substr(0, colon);
  const auto file = OpenRegularFile(path);
  const auto text = file ? ReadToEnd(file->get(), path) : file.error();
  if (!text || !line) return;
  const tune::Settings in_script = tune::Substitute(context.command, answer.recommended->settings).for_hook;
  context.patch = tune::PatchOf(*text, collect::FromHere(path), static_cast<int>(*line), in_script,
                                context.command, &context.by_hand);
}

// `fullbore run` of the command with the settings of a trial: they are the tags of its run.
int Apply(const Flags& flags, const Invocation& invocation) {
  const auto path = FindRun(flags.trial.directory, flags.apply);
  if (!path) return Fail(path.error(), StatusOf(path.error()));
  const auto run = record::ReadRunSummary(*path);
  if (!run) return Fail(run.error(), StatusOf(run.error()));
  const auto settings = SettingsOfTags(invocation.command, run->tags);
  if (!settings) return Fail(settings.error(), kExitUsage);
  const tune::Substituted made = tune::Substitute(invocation.command, *settings);
  if (!made.for_hook.empty())
    (void)setenv("FULLBORE_SETTINGS", tune::ToJson(made.for_hook).dump().c_str(), 1);
  Print(stderr, "fullbore: with {}: {}\n", tune::ToText(*settings),
        tune::CommandText(invocation.command, *settings));
  std::vector<std::string> words = {"fullbore", "run", "-o", flags.trial.directory, "--"};
  words.insert(words.end(), made.command.begin(), made.command.end());
  execv("/proc/self/exe", Pointers(words).data());
  return Fail(ErrnoError("cannot start fullbore run", errno), kExitFailure);
}

// The newest run of the command outside trials says whether a trial of it is like the run.
std::string UnlikeTheRun(const Flags& flags, const Invocation& invocation, const tune::Answer& answer) {
  constexpr size_t kMostRuns = 1'000;  // that are looked at, trials among them
  if (!answer.baseline || answer.baseline->run.empty()) return "";
  std::error_code unknown;
  const std::string here = fs::current_path(unknown).string();
  std::vector<fs::path> files = RunFiles(flags.trial.directory);
  std::reverse(files.begin(), files.end());
  files.resize(std::min(files.size(), kMostRuns));
  const auto run = std::find_if(files.begin(), files.end(), [&](const fs::path& file) {
    const auto summary = record::ReadRunSummary(file);
    return summary && tune::IsRunOf(*summary, invocation.command, here);
  });
  const auto trial = FindRun(flags.trial.directory, answer.baseline->run);
  if (run == files.end() || !trial) return "";
  const auto outside = record::ReadRun(*run), inside = record::ReadRun(*trial);
  if (!outside || !inside) return "";
  return tune::DifferenceFromRun(*outside, *inside).value_or("");
}

// ---- the command ----

int Finish(const Flags& flags, const Invocation& invocation, const tune::Machine& machine,
           const tune::Answer& answer) {
  tune::AnswerContext context;
  context.command = invocation.command;
  context.known = answer.known;
  AddPatch(answer, context);
  if (!context.patch.empty()) context.patch.insert(0, kDiffMark);
  context.price_per_hour = PriceOf(flags.price).value();
  if (flags.knobs.empty() && flags.values.empty()) context.held = KnobsThatAre(tune::Searched::kIfAsked);
  context.unlike_the_run = UnlikeTheRun(flags, invocation, answer);
  context.reason = machine.Reason(answer);
  if (machine.interrupted() && !answer.trials.empty()) context.resume = "the same command with --resume";
  if (!AnyToStandardOutput({&flags.json, &flags.patch, &flags.html})) PrintAnswer(answer, context);
  Result<void> written;
  if (flags.html.wanted()) written = flags.html.Write(tune::ToHtml(answer, context));
  if (written && flags.json.wanted()) written = WriteJson(flags.json, tune::AnswerJson(answer, context));
  if (written && flags.patch.wanted()) {
    for (const std::string& each : context.by_hand)
      Print(stderr, "fullbore: --patch: change by hand {}\n", each);
    if (context.patch.empty() && context.by_hand.empty())
      Print(stderr, "fullbore: --patch: the settings change no argument of the script\n");
    if (!context.patch.empty()) written = flags.patch.Write(context.patch);
  }
  if (!written) return Fail(written.error(), kExitFailure);
  if (machine.interrupted()) return 128 + machine.interrupted_by();
  return answer.recommended ? 0 : kExitFailure;
}

// Of a sample, as the trial's recording says.
std::optional<diagnose::SampleTokens> TokensOf(const TrialFlags& flags, const tune::Trial& trial) {
  if (trial.run.empty()) return std::nullopt;
  const auto file = FindRun(flags.directory, trial.run);
  const auto recording = file ? record::ReadRun(*file) : file.error();
  if (!recording) return std::nullopt;
  return tune::SampleTokensOf(*recording);
}

int TuneIt(Flags& flags, const Invocation& invocation) {
  auto options = OptionsOf("tune", flags.trial, invocation);
  if (!options) return Fail(options.error(), kExitUsage);
  if (auto judged = JudgeResults({&flags.html, &flags.json, &flags.patch}, InputsOf(flags.trial, invocation),
                                 flags.force, flags.trial.directory);
      !judged)
    return Fail(judged.error(), kExitUsage);
  if (!flags.apply.empty()) return Apply(flags, invocation);
  const auto question = QuestionOf(flags, invocation.command);
  if (!question) return Fail(question.error(), kExitUsage);
  const auto budget = ParsePositiveSeconds("--budget", flags.budget);
  if (!budget) return Fail(budget.error(), kExitUsage);
  if (const auto price = PriceOf(flags.price); !price) return Fail(price.error(), kExitUsage);
  std::error_code unknown;
  tune::Kept kept(flags.trial.directory, fs::current_path(unknown).string(), invocation.command);
  if (flags.resume) {
    if (auto loaded = kept.Load(); !loaded) return Fail(loaded.error(), kExitUsage);
  }
  if (auto safe = Protect(flags.trial, *options); !safe) return Fail(safe.error(), kExitFailure);
  options->tags[kTuneTag] = fs::path(kept.path()).stem().string().substr(std::string("tune-").size());
  tune::Machine machine(PlaceOf(flags.trial), *options, *budget, kept);
  tune::UsefulTokens in_tokens(machine,
                               [&](const tune::Trial& trial) { return TokensOf(flags.trial, trial); });
  const bool counts_tokens = question->objective == tune::Objective::kTokens;
  tune::Laboratory& laboratory = counts_tokens ? static_cast<tune::Laboratory&>(in_tokens) : machine;
  const tune::Answer answer = tune::Search(*question, laboratory);
  if (machine.error()) return Fail(*machine.error(), StatusOf(*machine.error()));
  return Finish(flags, invocation, machine, answer);
}

Handler Define(CLI::App& app, const Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--knobs", flags->knobs,
                 "What may be turned: workers, batch, threads, loader, precision, all, or settings by their\n"
                 "names in PyTorch, with commas (default: all but what changes training results)")
      ->type_name("NAMES");
  app.add_option(
         "--set", flags->values,
         "The values to choose from, for instance num_workers=0,2,4; where {num_workers} stands in the\n"
         "command, the present one first. Without --knobs, nothing else is turned")
      ->type_name("NAME=VALUES");
  app.add_option(
         "--objective", flags->objective,
         "throughput: the smallest setting near the best; tokens: the same, in tokens that are no padding\n"
         "rather than samples; cost: the fastest; memory: the least of it")
      ->capture_default_str();
  app.add_option("--within", flags->within, "How close to the best throughput is close enough")
      ->type_name("RATIO")
      ->capture_default_str();
  app.add_option("--budget", flags->budget,
                 "The time for all trials together; one that still runs then is stopped")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--price", flags->price,
                 "Price of an hour of this machine, for instance 2.5/h: says what an epoch costs")
      ->type_name("PRICE");
  app.add_flag("--exhaustive", flags->exhaustive, "Try all combinations of the values of --set");
  app.add_flag("--resume", flags->resume,
               "Go on with what an interrupted `tune` of this command has measured");
  AddResult(app, flags->html, "Write a page with curves, predictions and memory to this file");
  AddResult(app, flags->json, "Write trials and recommendation to this file");
  AddResult(
      app, flags->patch,
      "Write the recommended change of your script, a diff that is never applied for you, to this file.\n"
      "What it leaves to you is named, with its line");
  AddForce(app, flags->force);
  app.add_option("--apply", flags->apply, "Run the command with the settings of this trial, from outside")
      ->type_name("RUN");
  AddTrialFlags(app, flags->trial);
  return [flags, &invocation] { return TuneIt(*flags, invocation); };
}

}  // namespace

const Subcommand kTune = {
    "tune", "Find the settings that make a training command fast, by measuring them, and prove the gain",
    "fullbore tune -- python train.py\n"
    "  fullbore tune --knobs workers,batch -- python train.py\n"
    "  fullbore tune --set batch=32,64,128 --metric '([0-9.]+) img/s' -- ./train --batch {batch}",
    Define};

}  // namespace fullbore::cli
