#include "cli/trials.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/nearest.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/hook_directory.h"
#include "cli/peers.h"
#include "measure/collect/run_place.h"
#include "tune/knob/knob.h"
#include "tune/trial/printed.h"

namespace fullbore::cli {

namespace {

constexpr double kLongestS = 1e9;  // thirty years: nanoseconds count them

// Nothing that a shell takes apart or expands, and nothing that looks like an option.
bool IsPlain(std::string_view text) {
  return !text.empty() && text[0] != '-' && std::all_of(text.begin(), text.end(), [](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_letter || std::string_view("_.,:+/-").find(c) != std::string_view::npos;
  });
}

// An error where --on names anything else than slurm, or a flag of it makes no sense without it.
Result<void> CheckPlace(const TrialFlags& flags) {
  if (!flags.on.empty() && flags.on != "slurm") {
    return Error{ErrorCode::kInvalidArgument, fmt::format("--on '{}' is not a place for trials", flags.on),
                 "leave it out for this machine, or give --on slurm"};
  }
  if (flags.on.empty() && !flags.partition.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--partition is for jobs of a cluster", "add --on slurm"};
  }
  if (flags.on.empty() && flags.jobs) {
    return Error{ErrorCode::kInvalidArgument,
                 "--jobs is for a cluster: here, trials would disturb each other", "add --on slurm"};
  }
  if (flags.jobs && *flags.jobs < 1) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--jobs {} leaves nothing to wait for", *flags.jobs), "1 or more at a time"};
  }
  return {};
}

}  // namespace

void AddMeasuringFlags(CLI::App& app, TrialFlags& flags) {
  app.add_option("--metric", flags.metric,
                 "Read the throughput from what the program prints: a regular expression whose first\n"
                 "group is the number, in samples/s or anything else of which more is better")
      ->type_name("REGEX");
  app.add_option("--log", flags.log, "The file that --metric is read from (default: the program's output)")
      ->type_name("FILE");
  app.add_option("--precision", flags.precision,
                 "Half of the 95 % interval of the throughput at which a trial ends")
      ->type_name("RATIO")
      ->capture_default_str();
  app.add_option("--most", flags.most, "The longest time that a trial is measured")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--patience", flags.patience,
                 "How long a trial may take to its first step before it counts as hung")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("-o,--output", flags.directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  app.add_flag("--unprotected", flags.unprotected,
               "Run trials even where nothing keeps them from changing your files");
}

void AddTrialFlags(CLI::App& app, TrialFlags& flags) {
  AddMeasuringFlags(app, flags);
  app.add_option("--on", flags.on,
                 "Where trials run instead of here: slurm submits each as a job, from a directory that\n"
                 "the nodes share with this machine")
      ->type_name("slurm");
  app.add_option("--partition", flags.partition, "The partition for those jobs")->type_name("NAME");
  app.add_option("--jobs", flags.jobs,
                 "At most so many jobs at a time, where trials do not depend on each other (--exhaustive)")
      ->type_name("N")
      ->default_str(std::to_string(tune::Cluster().jobs));
}

Result<double> ParseRatio(const std::string& flag, const std::string& text) {
  const bool percent = text.ends_with('%');
  const auto number = ParseDouble(Trim(std::string_view(text).substr(0, text.size() - (percent ? 1 : 0))));
  const double ratio = number.value_or(0) / (percent ? 100 : 1);
  if (number && ratio > 0 && ratio < 1) return ratio;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} '{}' is not a ratio above 0 and below 1", flag, text),
               fmt::format("for instance {} 5%", flag)};
}

Result<double> ParsePositiveSeconds(const std::string& flag, const std::string& text) {
  const auto seconds = ParseSeconds(text);
  if (seconds && *seconds > 0) return std::min(*seconds, kLongestS);
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} '{}' is not a length of time", flag, text),
               fmt::format("for instance {} 90s or {} 10m", flag, flag)};
}

Result<tune::MeasureOptions> OptionsOf(const std::string& subcommand, const TrialFlags& flags,
                                       const Invocation& invocation) {
  if (invocation.command.empty()) {
    return Error{ErrorCode::kInvalidArgument, subcommand + ": no command",
                 fmt::format("put it after --, as in: fullbore {} -- python train.py", subcommand)};
  }
  if (!flags.log.empty() && flags.metric.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--log names the file that --metric is read from",
                 "give --metric, too"};
  }
  if (auto place = CheckPlace(flags); !place) return place.error();
  if (!flags.metric.empty()) {
    if (auto made = tune::MetricReader::Make(flags.metric); !made) return made.error();
  }
  const auto patience = ParsePositiveSeconds("--patience", flags.patience);
  if (!patience) return patience.error();
  const auto precision = ParseRatio("--precision", flags.precision);
  if (!precision) return precision.error();
  const auto most = ParsePositiveSeconds("--most", flags.most);
  if (!most) return most.error();
  tune::MeasureOptions options;
  options.precision.half_width = *precision;
  options.precision.most_seconds = *most;
  options.command = invocation.command;
  options.metric = flags.metric;
  options.log = flags.log;
  options.patience_s = *patience;
  options.directory = flags.directory;
  options.hook_directory = HookDirectory();
  options.package_directory = PackageDirectory();
  if (options.hook_directory.empty() && flags.metric.empty()) {
    return Error{ErrorCode::kNotFound,
                 "the Python hook is not installed beside this binary: no step would be seen",
                 "fullbore doctor says where it is looked for; --metric needs no hook"};
  }
  return options;
}

void SayOnError(const std::string& line) { Print(stderr, "fullbore: {}\n", line); }

tune::Place PlaceOf(const TrialFlags& flags) {
  tune::Place place{std::nullopt, SayOnError};
  if (flags.on.empty()) return place;
  const int jobs = flags.jobs.value_or(tune::Cluster().jobs);
  place.cluster = tune::Cluster{flags.partition, jobs, flags.unprotected};
  return place;
}

InputFiles InputsOf(const TrialFlags& flags, const Invocation& invocation) {
  InputFiles inputs;
  inputs.AddCommand(invocation.command);
  if (!flags.log.empty()) inputs.Add(flags.log);
  return inputs;
}

Result<void> Protect(const TrialFlags& flags, tune::MeasureOptions& options) {
  if (!flags.on.empty()) return {};  // the node sees to it
  const auto directory = collect::MakeRunsDirectory(options.directory);
  auto shelter = tune::FindShelter(directory ? *directory : "");
  if (!shelter) return shelter.error();
  options.shelter = std::move(*shelter);
  const isolate::Found& found = options.shelter.found;
  const std::string hint = fmt::format("{}: {}", found.why_no_view, found.how_to_allow);
  switch (found.protection) {
    case isolate::Protection::kView:
      return {};
    case isolate::Protection::kGuard:
      Print(stderr,
            "fullbore: trials get no private view of the file system here. What Python writes is redirected, "
            "and\n"
            "  other writes are refused; caches (~/.cache, HF_HOME, ...) and the modes, owners and times of "
            "files are\n"
            "  not protected\nhint: {}\n",
            hint);
      return {};
    case isolate::Protection::kNone:
      break;
  }
  if (flags.unprotected) {
    Print(stderr,
          "fullbore: --unprotected: whatever trials write by other means than Python changes your files\n");
    return {};
  }
  return Error{ErrorCode::kUnavailable,
               "nothing on this machine keeps a trial from changing your files: none is started",
               hint + "; or --unprotected, in a copy of your directory"};
}

namespace {

// In one of its shorter names, in another tool's word, or misspelt.
std::string HintForSetting(const std::string& name) {
  std::vector<std::string> names;
  for (const tune::Knob& each : tune::AllKnobs()) names.emplace_back(each.name);
  const std::vector<std::string> called = tune::KnobsCalled(name);
  std::optional<std::string> meant = SettingOfPeers(name);
  if (called.size() == 1) meant = called.front();
  if (!meant) meant = Nearest(name, names);
  return meant ? fmt::format("did you mean {}?", *meant)
               : fmt::format("the settings are {}", fmt::join(names, ", "));
}

}  // namespace

Result<void> CheckSetting(const std::vector<std::string>& command, const std::string& name,
                          const nlohmann::json& value, const std::string& flag) {
  const tune::Knob* knob = tune::KnobNamed(name);
  if (knob == nullptr) {
    if (tune::HasPlaceholder(command, name)) return {};  // the program's own
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: '{}' is not a setting, and {{{}}} is not in the command", flag, name, name),
                 HintForSetting(name)};
  }
  const auto why_not = knob->WhyNotLegal(value);
  if (why_not.empty()) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}: {}={}: {}", flag, name, tune::ToText(value), why_not), ""};
}

Result<tune::Settings> SettingsOfTags(const std::vector<std::string>& command,
                                      const std::map<std::string, std::string>& tags) {
  tune::Settings settings;
  for (const auto& [name, text] : tags) {
    if (name == kTuneTag || name == kCompareTag) continue;
    const auto setting = tune::ParseSetting(name + "=" + text);
    if (!setting || setting->first != name) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("--apply: the run's tag '{}' with the value '{}' is not a setting", name, text),
          "give the run of a trial of `tune` or `measure`"};
    }
    auto legal = CheckSetting(command, name, setting->second, "--apply");
    if (!legal) {
      Error error = legal.error();
      if (tune::KnobNamed(name) == nullptr)
        error.hint =
            "--apply takes the run's tags as the settings of a trial, and needs the command that it had";
      return error;
    }
    const bool is_own =
        tune::KnobNamed(name) == nullptr;  // of the command, where only its author knows what is legal
    if (is_own && setting->second.is_string() && !IsPlain(text)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--apply: the value of {{{}}} in this run, '{}', is not plain: a shell or the "
                               "program could take it for more than a value",
                               name, text),
                   fmt::format("if you want it, write it into the command in the place of {{{}}}", name)};
    }
    settings[name] = setting->second;
  }
  return settings;
}

}  // namespace fullbore::cli
