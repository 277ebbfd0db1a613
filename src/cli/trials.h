// The flags that `measure`, `tune` and `compare` of commands share: how a trial is run and measured.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "tune/trial/measure.h"
#include "tune/trial/place.h"

namespace CLI {
class App;
}

namespace fullbore::cli {

inline constexpr const char* kCompareTag =
    "compare";  // of each trial of a comparison: "baseline" or "candidate"
inline constexpr const char* kTuneTag =
    "tune";  // of each trial of one search; all its other tags are settings

struct TrialFlags {
  std::string metric, log;
  std::string precision = "2%", most = "60s", patience = "5m";
  std::string directory = kDefaultRunsDirectory;
  std::string on, partition;  // where trials run; empty: here
  std::optional<int> jobs;    // at a time, there
  bool unprotected = false;   // run trials where nothing keeps their hands off the user's files
};

void AddTrialFlags(CLI::App& app, TrialFlags& flags);
void AddMeasuringFlags(CLI::App& app, TrialFlags& flags);  // those among them of trials that run here

// An error where there is no command, or a flag makes no sense. `subcommand` is who asks.
Result<tune::MeasureOptions> OptionsOf(const std::string& subcommand, const TrialFlags& flags,
                                       const Invocation& invocation);

// A line of progress, on standard error.
void SayOnError(const std::string& line);

// Where --on says.
tune::Place PlaceOf(const TrialFlags& flags);

// What a trial reads: the files among the words of the command, and the log.
InputFiles InputsOf(const TrialFlags& flags, const Invocation& invocation);

// Finds what keeps trials off the user's files, and says before the first of them where that is not everything. An error
// where it is nothing, unless the user takes that upon himself.
Result<void> Protect(const TrialFlags& flags, tune::MeasureOptions& options);

// Whether the setting stands in the command, or is a knob of ours with a value that it can have. `flag` is what gave it.
Result<void> CheckSetting(const std::vector<std::string>& command, const std::string& name,
                          const nlohmann::json& value, const std::string& flag = "--set");

// The settings of a trial, which are the tags of its run. A run may come from somebody else: each is judged as one of
// --set is, and a value of the command's own has to be plain, so that no shell or program takes it for more.
Result<tune::Settings> SettingsOfTags(const std::vector<std::string>& command,
                                      const std::map<std::string, std::string>& tags);

Result<double> ParseRatio(const std::string& flag,
                          const std::string& text);  // "5%" or "0.05"; above 0, below 1
Result<double> ParsePositiveSeconds(const std::string& flag, const std::string& text);

}  // namespace fullbore::cli
