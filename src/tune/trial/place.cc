#include "tune/trial/place.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/ending_signals.h"
#include "measure/collect/run_place.h"
#include "measure/collect/signals.h"
#include "tune/trial/slurm.h"

namespace fullbore::tune {

namespace {

// The words behind `fullbore measure --json -` that measure this trial.
std::vector<std::string> WordsOf(const Cluster& cluster, const MeasureOptions& options,
                                 const Settings& settings) {
  std::vector<std::string> words = {"--output",    std::filesystem::absolute(options.directory).string(),
                                    "--patience",  fmt::format("{}s", options.patience_s),
                                    "--precision", fmt::format("{}", options.precision.half_width),
                                    "--most",      fmt::format("{}s", options.precision.most_seconds)};
  for (const auto& [name, value] : settings) words.insert(words.end(), {"--set", name + "=" + ToText(value)});
  if (!options.metric.empty()) words.insert(words.end(), {"--metric", options.metric});
  if (!options.log.empty()) words.insert(words.end(), {"--log", options.log});
  if (cluster.unprotected) words.emplace_back("--unprotected");
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

// A signal that asks this process to end.
std::optional<int> AskedToEnd(collect::Signals& signals) {
  while (const auto next = signals.Next()) {
    const int signal = static_cast<int>(next->ssi_signo);
    if (AsksToEnd(signal)) return signal;
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<int>> MeasureOnCluster(const Place& place, const MeasureOptions& options,
                                            const std::vector<Settings>& settings,
                                            const std::function<void(size_t, const Trial&)>& measured) {
  const Cluster& cluster = *place.cluster;
  SlurmOptions slurm;
  std::error_code error;
  slurm.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  slurm.directory = std::filesystem::absolute(options.directory).string() + "/slurm";
  slurm.jobs = cluster.jobs;
  // What lies there is run as a job, in our name.
  for (const std::string& directory : {options.directory, slurm.directory})
    if (auto made = collect::MakeRunsDirectory(directory); !made) return made.error();
  if (!cluster.partition.empty()) slurm.arguments.push_back("--partition=" + cluster.partition);
  std::vector<SlurmTrial> trials;
  for (const Settings& each : settings) trials.push_back({each, WordsOf(cluster, options, each)});
  collect::Signals signals;
  signals.Watch();
  std::optional<int> asked_to_end;
  const auto is_over = [&] {
    if (!asked_to_end) asked_to_end = AskedToEnd(signals);
    return asked_to_end.has_value() || (options.given_up && options.given_up());
  };
  const auto done = MeasureOnSlurm(slurm, trials, {is_over, place.say, measured});
  std::filesystem::remove(slurm.directory, error);  // where nothing is left in it
  if (!done && !asked_to_end) return done.error();
  return asked_to_end;
}

Result<Measured> MeasureAt(const Place& place, const MeasureOptions& options, const Settings& settings) {
  if (!place.cluster) return Measure(options, settings);
  Measured measured;
  const auto asked_to_end = MeasureOnCluster(place, options, {settings},
                                             [&](size_t, const Trial& trial) { measured.trial = trial; });
  if (!asked_to_end) return asked_to_end.error();
  measured.interrupted_by = *asked_to_end;
  return measured;
}

}  // namespace fullbore::tune
