#include "cli/slurm_trials.h"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>

#include "base/guarded_file.h"
#include "base/print.h"
#include "measure/collect/signals.h"

namespace fullbore::cli {

namespace {

// The words behind `fullbore measure --json` that measure this trial.
std::vector<std::string> WordsOf(const TrialFlags& flags, const std::vector<std::string>& command,
                                 const RemoteTrial& trial) {
  std::vector<std::string> words = {"--output",    std::filesystem::absolute(flags.directory).string(),
                                    "--patience",  flags.patience,
                                    "--precision", trial.precision,
                                    "--most",      trial.most};
  for (const auto& [name, value] : trial.settings)
    words.insert(words.end(), {"--set", name + "=" + tune::ToText(value)});
  if (!flags.metric.empty()) words.insert(words.end(), {"--metric", flags.metric});
  if (!flags.log.empty()) words.insert(words.end(), {"--log", flags.log});
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
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
  if (flags.jobs < 1)
    return Error{ErrorCode::kInvalidArgument, fmt::format("--jobs {} is less than one", flags.jobs),
                 "give the number of jobs that may be in the queue at a time"};
  return {};
}

Result<RemoteTrials> MeasureElsewhere(const TrialFlags& flags, const std::vector<std::string>& command,
                                      const std::vector<RemoteTrial>& trials) {
  tune::SlurmOptions options;
  std::error_code error;
  options.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  options.directory = std::filesystem::absolute(flags.directory).string() + "/slurm";
  if (auto made = MakeDirectory(options.directory, kPrivateDirectory); !made) return made.error();
  if (!flags.partition.empty()) options.arguments.push_back("--partition=" + flags.partition);
  options.jobs = flags.jobs;
  std::vector<tune::SlurmTrial> asked;
  for (const RemoteTrial& trial : trials) asked.push_back({trial.settings, WordsOf(flags, command, trial)});
  collect::Signals signals;
  signals.Watch();
  RemoteTrials result;
  auto measured = tune::MeasureOnSlurm(
      options, asked,
      [&] {
        if (!result.interrupted_by) result.interrupted_by = AskedToEnd(signals);
        return result.interrupted_by.has_value();
      },
      [](const std::string& line) { Print(stderr, "fullbore: {}\n", line); });
  std::filesystem::remove(options.directory, error);  // where nothing is left in it
  if (result.interrupted_by) return result;
  if (!measured) return measured.error();
  result.trials = std::move(*measured);
  return result;
}

}  // namespace fullbore::cli
