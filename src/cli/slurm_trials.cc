#include "cli/slurm_trials.h"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>

#include "base/print.h"
#include "measure/collect/run_place.h"
#include "measure/collect/signals.h"
#include "tune/trial/slurm.h"

namespace fullbore::cli {

namespace {

// The words behind `fullbore measure --json -` that measure this trial.
std::vector<std::string> WordsOf(const TrialFlags& flags, const tune::MeasureOptions& options,
                                 const tune::Settings& settings) {
  std::vector<std::string> words = {"--output",    std::filesystem::absolute(flags.directory).string(),
                                    "--patience",  flags.patience,
                                    "--precision", fmt::format("{}", options.precision.half_width),
                                    "--most",      fmt::format("{}s", options.precision.most_seconds)};
  for (const auto& [name, value] : settings)
    words.insert(words.end(), {"--set", name + "=" + tune::ToText(value)});
  if (!flags.metric.empty()) words.insert(words.end(), {"--metric", flags.metric});
  if (!flags.log.empty()) words.insert(words.end(), {"--log", flags.log});
  if (flags.unprotected) words.emplace_back("--unprotected");
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

// A signal that asks this process to end.
std::optional<int> AskedToEnd(collect::Signals& signals) {
  while (const auto next = signals.Next()) {
    const int signal = static_cast<int>(next->ssi_signo);
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) return signal;
  }
  return std::nullopt;
}

}  // namespace

Result<void> CheckPlace(const TrialFlags& flags) {
  if (!flags.on.empty() && flags.on != "slurm") {
    return Error{ErrorCode::kInvalidArgument, fmt::format("--on '{}' is no place for trials", flags.on),
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

Result<std::optional<int>> MeasureOnCluster(const TrialFlags& flags, const tune::MeasureOptions& options,
                                            const std::vector<tune::Settings>& settings,
                                            const std::function<void(size_t, const tune::Trial&)>& measured) {
  tune::SlurmOptions slurm;
  std::error_code error;
  slurm.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  slurm.directory = std::filesystem::absolute(flags.directory).string() + "/slurm";
  if (flags.jobs) slurm.jobs = *flags.jobs;
  // What lies there is run as a job, in our name.
  for (const std::string& directory : {flags.directory, slurm.directory})
    if (auto made = collect::MakeRunsDirectory(directory); !made) return made.error();
  if (!flags.partition.empty()) slurm.arguments.push_back("--partition=" + flags.partition);
  std::vector<tune::SlurmTrial> trials;
  for (const tune::Settings& each : settings) trials.push_back({each, WordsOf(flags, options, each)});
  collect::Signals signals;
  signals.Watch();
  std::optional<int> asked_to_end;
  const auto is_over = [&] {
    if (!asked_to_end) asked_to_end = AskedToEnd(signals);
    return asked_to_end.has_value() || (options.given_up && options.given_up());
  };
  const auto say = [](const std::string& line) { Print(stderr, "fullbore: {}\n", line); };
  const auto done = tune::MeasureOnSlurm(slurm, trials, {is_over, say, measured});
  std::filesystem::remove(slurm.directory, error);  // where nothing is left in it
  if (!done && !asked_to_end) return done.error();
  return asked_to_end;
}

Result<tune::Measured> MeasureThere(const TrialFlags& flags, const tune::MeasureOptions& options,
                                    const tune::Settings& settings) {
  if (flags.on.empty()) return tune::Measure(options, settings);
  tune::Measured measured;
  const auto asked_to_end = MeasureOnCluster(
      flags, options, {settings}, [&](size_t, const tune::Trial& trial) { measured.trial = trial; });
  if (!asked_to_end) return asked_to_end.error();
  measured.interrupted_by = *asked_to_end;
  return measured;
}

}  // namespace fullbore::cli
