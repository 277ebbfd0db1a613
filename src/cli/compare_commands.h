// `fullbore compare` of two commands, of one on two commits, or of one with other settings: measured against each
// other, in turns.
#pragma once

#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "cli/trials.h"
#include "tune/proof/fail_if.h"

namespace fullbore::cli {

struct CommandsFlags {
  TrialFlags trial;
  std::string baseline, candidate;
  std::vector<std::string> at;        // one commit, or two
  std::vector<std::string> settings;  // of the candidate
  bool whole_runs = false;
  std::string budget = "10m";

  bool wanted() const { return !baseline.empty() || !candidate.empty() || !at.empty() || !settings.empty(); }
};

void AddCommandsFlags(CLI::App& app, CommandsFlags& flags);

// Returns the exit status. `json` is the file for the result, and may be unwanted.
int CompareCommands(CommandsFlags& flags, const std::vector<tune::FailIf>& conditions, ResultFile& json,
                    bool force, const Invocation& invocation);

// Says which conditions hold; the exit status that follows.
int StatusOfConditions(const std::vector<tune::FailIf>& conditions, const tune::MeasuredChange& measured);

}  // namespace fullbore::cli
