// fullbore run: the flags are described below, in Define.
#include "measure/collect/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/guarded_file.h"
#include "base/print.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/alert_rules.h"
#include "cli/companion.h"
#include "cli/hook_directory.h"
#include "cli/open_report.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "cli/trials.h"
#include "measure/collect/node_of_run.h"
#include "measure/collect/run_name.h"
#include "measure/collect/run_place.h"
#include "record/run_reader.h"
#include "watch/onlooker.h"
#include "watch/track/tracker.h"

namespace fullbore::cli {

namespace fs = std::filesystem;

namespace {

// More of them make a trace that takes longer to read than it is worth.
constexpr int64_t kMaxWindowSteps = 50;
// At the end of the run, for all that goes on beside it.
constexpr int64_t kPatienceNs = 5 * kNsPerSecond;

struct Flags {
  collect::RunOptions run;
  std::vector<std::string> tags;
  ResultFile json{"--json", kJsonResult}, html{"--html", kHtmlResult};
  std::string windows;
  std::string time;  // of --for
  std::optional<int64_t> steps;
  std::string rules;
  std::vector<std::string> trackers;
  bool no_hook = false, no_command = false, fast_data = false, autopilot = false, keep_windows = false;
  bool open = false, force = false;
  int started_by = -1;  // a socket
};

// One of the settings that the hook reads in the training process (python/fullbore/hook/core/settings.py).
Result<void> AskForFastData() {
  const char* set = std::getenv("FULLBORE_SETTINGS");
  auto settings = nlohmann::json::parse(set ? set : "{}", nullptr, /*allow_exceptions=*/false);
  if (!settings.is_object()) {
    return Error{ErrorCode::kInvalidArgument, "run: FULLBORE_SETTINGS in the environment is no JSON object",
                 "unset it, or see docs/settings.md"};
  }
  settings["fast_data"] = true;
  (void)setenv("FULLBORE_SETTINGS", settings.dump().c_str(), 1);
  return {};
}

// What the hook is to change in the script, in its environment.
Result<void> AskForChanges(const Flags& flags) {
  if (flags.no_hook && (flags.fast_data || flags.autopilot)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("run: {} works through the hook, which --no-hook leaves out",
                             flags.fast_data ? "--fast-data" : "--autopilot"),
                 "leave out one of them"};
  }
  if (flags.autopilot) (void)setenv("FULLBORE_AUTOPILOT", "1", 1);
  return flags.fast_data ? AskForFastData() : Result<void>();
}

// As the hook reads it (python/fullbore/hook/torch/windows.py): "off", "N@STEP", or the seconds between two windows.
Result<std::string> WindowsAskedFor(const std::string& text) {
  if (text == "off") return text;
  const size_t at = text.find('@');
  if (at != std::string::npos) {
    const auto steps = ParseInt(text.substr(0, at)), step = ParseInt(text.substr(at + 1));
    if (steps && step && *steps > 0 && *steps <= kMaxWindowSteps && *step >= 0) return text;
  } else if (text.starts_with("every ")) {
    const auto seconds = ParseSeconds(text.substr(6));
    if (seconds && *seconds >= 1) return std::to_string(*seconds);
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("run: --windows '{}' is not off, N@STEP (N up to {}) or every TIME", text, kMaxWindowSteps),
      "for instance --windows 4@100 or --windows 'every 10m'"};
}

// Where the command is to be stopped; nothing where it ends by itself.
Result<std::optional<collect::Limit>> LimitOf(const Flags& flags) {
  if (flags.time.empty() && !flags.steps) return std::optional<collect::Limit>();
  if (flags.steps && *flags.steps <= 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("run: --steps {} would end the command before its first step", *flags.steps),
                 "for instance --steps 200"};
  }
  if (flags.steps && flags.no_hook) {
    return Error{ErrorCode::kInvalidArgument,
                 "run: --steps counts what the hook sees, which --no-hook leaves out",
                 "say how long instead: --for 60s"};
  }
  collect::Limit limit;
  limit.steps = flags.steps;
  if (flags.time.empty()) return std::optional(limit);
  const auto seconds = ParsePositiveSeconds("--for", flags.time);
  if (!seconds) return seconds.error();
  limit.time_ns = static_cast<int64_t>(*seconds * 1e9);
  return std::optional(limit);
}

Result<std::map<std::string, std::string>> ParseTags(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> tags;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("--tag '{}' is not of the form key=value", text),
                   ""};
    }
    tags[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return tags;
}

// Checked before the command starts, and named so that another process finds them; empty without any.
Result<std::string> RulesToWatch(const Flags& flags) {
  if (flags.rules.empty()) return std::string();
  const auto rules = RulesNamed(flags.rules);
  if (!rules) return rules.error();
  if (flags.rules == "default") return flags.rules;
  std::error_code unknown;
  if (!fs::is_regular_file(flags.rules, unknown)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("run: --rules '{}' is not a regular file", flags.rules),
                 "it is read again by the process that keeps watch"};
  }
  return fs::absolute(flags.rules, unknown).string();
}

// Who keeps watch, and who tells trackers; checked before the command starts.
Result<std::vector<Companion>> CompanionsFor(const Flags& flags) {
  std::vector<Companion> companions;
  const auto rules = RulesToWatch(flags);
  if (!rules) return rules.error();
  if (!rules->empty()) {
    companions.emplace_back(
        Companion::Task{{"alerts", "watch", "--rules", *rules},
                        watch::HelperMemory::kBounded,
                        "who keeps watch over this run",
                        "an alert is still being delivered, which goes on in the background",
                        "an alert of its last seconds may be missing"});
  }
  std::vector<watch::TrackerName> known;
  for (const std::string& tracker : flags.trackers) {
    const auto named = watch::TrackerNamed(tracker);
    if (!named) return named.error();
    const std::string shown = MaskUrls(tracker);
    if (std::ranges::find(known, *named) != known.end()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("run: --log {} names a tracker that is told already", shown),
                   "name it once: two at a time would write the same run"};
    }
    known.push_back(*named);
    const std::string sends = fmt::format("`fullbore export RUN --to {}` sends", shown);
    companions.emplace_back(Companion::Task{
        {"export", "--follow", "--to", tracker},
        watch::HelperMemory::kUnbounded,
        "who tells " + shown,
        fmt::format(
            "{} has not taken all yet: it is tried for 15 more minutes, in the background; after that, {} it",
            shown, sends),
        sends + " what is missing"});
  }
  return companions;
}

// A run that no command could find by its name. Blocks of a script are stages, and have any.
Result<void> RefuseNewest(const Flags& flags) {
  if (flags.run.starter || (flags.run.name != kNewestRun && flags.run.run_id != kNewestRun)) return {};
  return Error{ErrorCode::kInvalidArgument, "run: no run can be named 'last', which is the newest of all",
               "any other name: --name last-try"};
}

// Which machine this is of a run on several, and of which run.
Result<void> FindNode(Flags& flags, const std::vector<std::string>& command) {
  if (!flags.run.node.empty()) {
    if (!flags.run.run_id.empty()) return {};
    return Error{ErrorCode::kInvalidArgument, "run: --node names one machine of a run: it needs --run ID",
                 "the same ID on each of them, in one directory that all see (-o DIR)"};
  }
  if (flags.run.starter && !flags.run.name.empty()) {  // a block of a script, or a notebook's cell
    flags.run.stage = flags.run.name;
    flags.run.name = collect::NameWithTime(flags.run.name);
    return {};
  }
  std::array<char, HOST_NAME_MAX + 1> hostname{};
  (void)gethostname(hostname.data(), hostname.size() - 1);
  const collect::NodeOfRun found =
      collect::FindNode(command, hostname.data(), [](const char* name) { return std::getenv(name); });
  if (flags.run.starter && found.run_id.empty()) {
    flags.run.name = collect::StepName([](const char* name) { return std::getenv(name); });
    flags.run.stage = collect::NameOf(command);
    return {};
  }
  if (found.node.empty()) return {};
  if (flags.run.run_id.empty() && found.lacks_id) {
    if (!flags.run.quiet) {
      Print(
          stderr,
          "fullbore: this is one of several machines. With --run ID, the same on each, and -o DIR that all see, they "
          "become one run\n");
    }
    return {};
  }
  if (flags.run.run_id.empty()) flags.run.run_id = found.run_id;
  flags.run.node = found.node;
  return {};
}

// Of a run on several machines, the run rather than this one's file.
std::string CommandThatExplains(const std::string& run_file) {
  fs::path path = collect::FromHere(run_file);
  if (path.parent_path().extension() == record::kRunSuffix) path = path.parent_path();
  const bool usual_place = path.parent_path() == kDefaultRunsDirectory;
  return "fullbore explain " + ShellQuote(usual_place ? path.stem().string() : path.string());
}

// Between the first looks at a run that goes on. For tests, the environment may say less.
int64_t PauseBetweenLooksNs() {
  const char* seconds = std::getenv("FULLBORE_LOOK_S");
  const auto wanted = seconds == nullptr ? std::nullopt : ParseInt(seconds);
  return (wanted && *wanted > 0 ? *wanted : 10) * kNsPerSecond;
}

// Names as `fullbore explain` reads them.
void KeepWindows(const record::Recording& recording, const std::string& run_file) {
  for (const record::Stage& stage : recording.stages) {
    for (const record::DeviceWindow& window : stage.device_windows) {
      const std::string path =
          fs::path(run_file)
              .replace_extension(fmt::format("{}rank{}-step{}.json.zst",
                                             recording.stages.size() > 1 ? stage.name + "-" : "", window.rank,
                                             window.first_step))
              .string();
      if (auto written = WriteFileAtOnce(path, window.trace, kPrivateFile); !written)
        Fail(written.error(), 0);
    }
  }
}

// The command's, unless we ended it: then it says whether there is what was asked for.
int ExitStatusOf(const collect::RunOutcome& outcome) {
  if (!outcome.was_ended) return outcome.exit_status;
  return outcome.path.empty() || !outcome.wrote_everything ? kExitFailure : 0;
}

int Report(const Flags& flags, const collect::RunOutcome& outcome) {
  if (outcome.path.empty()) return ExitStatusOf(outcome);  // nothing was recorded, as reported already
  if (flags.run.starter) return 0;                         // nobody waits for a report
  auto recording = record::ReadRun(outcome.path);
  if (!recording) {
    Fail(recording.error(), 0);
    return ExitStatusOf(outcome);
  }
  if (flags.keep_windows) KeepWindows(*recording, outcome.path);
  ReportTargets targets;
  targets.json = flags.json;
  targets.html = flags.html;
  if (!flags.html.wanted()) {  // beside the run file, readable by whoever may read that
    targets.html.path = fs::path(outcome.path).replace_extension(".html").string();
    targets.html.mode = kPrivateFile;
  }
  if (targets.html.path != "-") targets.html.path = collect::FromHere(targets.html.path);
  targets.terminal = !flags.run.quiet;
  targets.to_stderr = true;
  targets.again = CommandThatExplains(outcome.path);
  if (auto written = WriteReports(*recording, targets); !written)
    Fail(written.error(), 0);
  else if (flags.open)
    OpenReport(targets.html.path);
  return ExitStatusOf(outcome);
}

// What the command reads, and what is read for it.
InputFiles InputsOf(const Flags& flags, const Invocation& invocation) {
  InputFiles inputs;
  inputs.AddCommand(invocation.command);
  if (!flags.rules.empty()) inputs.Add(flags.rules);
  if (!flags.run.run_id.empty())
    inputs.Add(fs::path(flags.run.directory) / (flags.run.run_id + std::string(record::kRunSuffix)));
  return inputs;
}

int RunIt(Flags& flags, const Invocation& invocation) {
  if (invocation.command.empty()) {
    return Fail({ErrorCode::kInvalidArgument, "run: no command",
                 "put it after --, as in: fullbore run -- python train.py"},
                kExitUsage);
  }
  if (auto judged = JudgeResults({&flags.json, &flags.html}, InputsOf(flags, invocation), flags.force,
                                 flags.run.directory);
      !judged)
    return Fail(judged.error(), kExitUsage);
  if (flags.open && flags.html.path == "-") {
    return Fail({ErrorCode::kInvalidArgument, "run: --open needs a file, and --html - is standard output",
                 "leave out one of them"},
                kExitUsage);
  }
  auto tags = ParseTags(flags.tags);
  if (!tags) return Fail(tags.error(), kExitUsage);
  if (!flags.run.stage.empty() && flags.run.run_id.empty()) {
    return Fail({ErrorCode::kInvalidArgument, "--stage names a part of a run: it needs --run ID", ""},
                kExitUsage);
  }
  if (auto asked = AskForChanges(flags); !asked) return Fail(asked.error(), kExitUsage);
  if (!flags.windows.empty()) {
    const auto windows = WindowsAskedFor(flags.windows);
    if (!windows) return Fail(windows.error(), kExitUsage);
    (void)setenv("FULLBORE_WINDOWS", windows->c_str(), 1);
  }
  auto companions = CompanionsFor(flags);
  if (!companions) return Fail(companions.error(), kExitUsage);
  const auto limit = LimitOf(flags);
  if (!limit) return Fail(limit.error(), kExitUsage);
  flags.run.limit = *limit;
  flags.run.tags = *tags;
  if (auto nameable = RefuseNewest(flags); !nameable) return Fail(nameable.error(), kExitUsage);
  if (auto found = FindNode(flags, invocation.command); !found) return Fail(found.error(), kExitUsage);
  flags.run.command = invocation.command;
  flags.run.keep_command_lines = !flags.no_command;
  if (!flags.no_hook) {
    flags.run.hook_directory = HookDirectory();
    flags.run.package_directory = PackageDirectory();
    if (flags.run.hook_directory.empty()) {
      Print(stderr,
            "fullbore: the Python hook is not installed beside this binary: steps will not be seen (fullbore "
            "doctor)\n");
    }
  }
  watch::Onlooker onlooker("/proc/self/exe", PauseBetweenLooksNs());
  flags.run.onlook = [&](const std::string& run_file, int64_t now_ns) -> std::optional<std::string> {
    const auto said = onlooker.Tick(run_file, now_ns);
    if (!said) return std::nullopt;
    return fmt::format("{} ({})", *said, CommandThatExplains(run_file));
  };
  flags.run.keep_watch = [&](const std::string& run_file) {
    std::vector<std::string> lines;
    for (Companion& each : *companions) std::ranges::move(each.Tick(run_file), std::back_inserter(lines));
    return lines;
  };
  const collect::RunResult result = collect::Run(flags.run);
  const int64_t deadline_ns = MonotonicNs() + kPatienceNs;
  for (Companion& each : *companions) {
    for (const std::string& line : each.Finish(deadline_ns)) {
      if (!flags.run.quiet) Print(stderr, "fullbore: {}\n", line);
    }
  }
  if (const auto* failure = std::get_if<collect::RunFailure>(&result))
    return Fail(failure->error, failure->exit_status);
  const auto& outcome = std::get<collect::RunOutcome>(result);
  try {
    return Report(flags, outcome);
  } catch (
      const std::exception& error) {  // a bug, or no memory: the exit status is the command's all the same
    return Fail({ErrorCode::kInternal, std::string("no report: ") + error.what(), ""}, ExitStatusOf(outcome));
  }
}

// Beside a command that whoever holds the other end of our socket is about to start.
int RunStarted(Flags& flags) {
  collect::Starter starter{UniqueFd(flags.started_by)};
  const auto beginning = starter.WaitForBeginning();
  if (!beginning) return Fail(beginning.error(), kExitFailure);
  if (chdir(beginning->directory.c_str()) != 0) {
    const Error error = ErrnoError("cannot work in '" + beginning->directory + "'", errno);
    starter.Refuse(error.text);
    return Fail(error, kExitFailure);
  }
  flags.run.starter = &starter;
  flags.run.quiet = true;
  return RunIt(flags, {beginning->command, true});
}

Handler Define(CLI::App& app, const Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--name", flags->run.name, "Part of the run's id (default: from the command)");
  app.add_option("--run", flags->run.run_id,
                 "Record as a stage of this run, new or existing: prepare -> train -> evaluate");
  app.add_option("--stage", flags->run.stage, "Name of the stage (with --run)");
  app.add_option(
      "--node", flags->run.node,
      "Of a run on several machines, this one's name (with --run; known under srun, and its host's\n"
      "name where the command says --nnodes)");
  app.add_option("--tag", flags->tags, "key=value to find the run by; may be given several times")
      ->type_name("K=V");
  app.add_option("-o,--output", flags->run.directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  AddResult(app, flags->json, "Write the report object to this file, after the command ended");
  AddResult(app, flags->html, "Write the HTML report to this file (default: beside the run file)");
  AddForce(app, flags->force);
  app.add_flag("--open", flags->open,
               "Show the HTML report in the browser at the end, where there is a desktop");
  app.add_flag("--quiet,-q", flags->run.quiet, "No status line and no report on the terminal");
  app.add_flag("--fast-data", flags->fast_data,
               "Feed the training DataLoader from fullbore.data where it gives the same batches");
  app.add_flag(
      "--autopilot", flags->autopilot,
      "Try other numbers of loader workers while the script trains, and keep what helps: only where the\n"
      "training stays the same, bit for bit (docs/settings.md)");
  app.add_option(
         "--windows", flags->windows,
         "When to take a few steps under torch's own profiler, for what the device, or the CPU's\n"
         "operators, really do: off, N@STEP or 'every TIME' (default: every 10m where a device is used or\n"
         "the CPU computes, and never for more than 0.5 % of the time)")
      ->type_name("WHEN");
  app.add_flag("--keep-windows", flags->keep_windows,
               "Keep their last traces beside the run file, for Perfetto and `fullbore explain`");
  app.add_option(
         "--for", flags->time,
         "End the command after this time, or as soon as the verdict is sure: for a profile. It is asked as\n"
         "by Ctrl-C, later with SIGTERM and SIGKILL, and so is all that it started. The exit status is then\n"
         "0 where the profile was recorded")
      ->type_name("TIME");
  app.add_option("--steps", flags->steps,
                 "The same after so many training steps; with --for, what comes first")
      ->type_name("N");
  app.add_option("--rules", flags->rules, kRulesHelp)->type_name("FILE");
  app.add_option(
         "--log", flags->trackers,
         "Also tell this tracker, while the run goes on: tensorboard:DIR, mlflow[:URI], wandb[:PROJECT] or\n"
         "otlp:URL; may be given several times (docs/trackers.md)")
      ->allow_extra_args(false)
      ->type_name("TRACKER");
  app.add_flag(
      "--no-command", flags->no_command,
      "Keep no command lines, of the command or of its processes. Values of --api-key, HF_TOKEN= and "
      "the like are masked in any case");
  app.add_flag("--no-hook", flags->no_hook, "Do not look inside Python processes");
  app.add_option("--started-by", flags->started_by)
      ->group("");  // src/slurm and python/fullbore/runs/recording.py: not for people
  return
      [flags, &invocation] { return flags->started_by < 0 ? RunIt(*flags, invocation) : RunStarted(*flags); };
}

}  // namespace

const Subcommand kRun = {"run", "Run a training command as it is, and say at the end where its time went",
                         "fullbore run -- python train.py", Define};

}  // namespace fullbore::cli
