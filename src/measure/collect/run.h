// `fullbore run`: runs a command unmodified, beside a recorder.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "measure/collect/command.h"
#include "measure/collect/limit.h"
#include "measure/collect/rank_tracker.h"
#include "measure/collect/run_place.h"
#include "measure/collect/starter.h"

namespace fullbore::collect {

// A run that is a trial: apart from the terminal and from the user's files, looked at while it goes on, and ended from
// outside together with everything that it started. Ctrl-C ends it, too, and does not reach the command by itself. What
// cannot be kept apart or recorded does not run.
struct TrialRun {
  std::map<std::string, std::string> environment;  // on top of ours
  Command::Apart apart;                            // to which the run's channel is added as written through
  StepListener on_step;
  std::function<bool(int64_t now_ns)> is_over;  // asked some times a second; must not block
  // Of one that takes turns with another: while that runs, the command and all that it started stand still (SIGSTOP), and
  // the clock of what is recorded stands with them.
  struct Turns {
    std::function<bool(int64_t now_ns)> stands;  // asked after what was recorded until then was delivered
    std::function<void()> stood;                 // called whenever it has come to stand
    int word = -1;                               // a descriptor: to be asked at once when it can be read
  };
  std::optional<Turns> turns;
};

struct RunOptions {
  std::vector<std::string> command;
  std::string directory = kDefaultRunsDirectory;  // where runs are kept; created
  std::string name;                               // part of the run's id; from the command where empty
  std::string run_id;                             // an existing or new run that this command is a stage of
  std::string node;  // of a run on several machines: the name of this one's file in it
  std::string stage;
  std::map<std::string, std::string> tags;
  std::string hook_directory;      // holds the hook's sitecustomize.py; empty: no hook
  std::string package_directory;   // holds the Python package fullbore, for the hook; empty: none
  bool keep_command_lines = true;  // with their secrets masked
  bool quiet = false;              // no start message, no status line
  // Called some times a second while the command runs, unless `quiet` without a limit, with the path of the run file and
  // the time of MonotonicNs(): what it returns is a verdict that is sure, and said on the terminal. May be empty; must
  // neither block nor throw.
  std::function<std::optional<std::string>(const std::string& run_file, int64_t now_ns)> onlook;
  // The same for every run that is recorded, quiet or not.
  std::function<std::vector<std::string>(const std::string& run_file)> keep_watch;
  // The command is stopped there, as Ctrl-C would stop it, with all that it started; not one that somebody else starts.
  std::optional<Limit> limit;
  std::optional<TrialRun> trial;
  // Who starts the command in our place; the run's id is then `name` or `run_id` as it is. What cannot be recorded in its
  // directory is not recorded, and leaves nothing. Outlives the run.
  Starter* starter = nullptr;
};

// The command ran. If the run could not be recorded in its directory, it is in a temporary one; if that
// failed as well, `path` is empty. The terminal has said so.
struct RunOutcome {
  std::string run_id;
  std::string path;     // of the run file
  int exit_status = 0;  // of the command, as a shell shows it
  bool wrote_everything = true;
  bool out_of_memory = false;         // the kernel killed a process of it
  bool was_ended = false;             // by us: a trial, or at a limit
  std::optional<int> interrupted_by;  // a trial: the signal that we got meanwhile
};

// Nothing ran. `exit_status` is ours: 2 for wrong arguments; 126 or 127, as a shell's, if the command cannot
// be executed or does not exist.
struct RunFailure {
  Error error;
  int exit_status = 2;
};

using RunResult = std::variant<RunOutcome, RunFailure>;

RunResult Run(const RunOptions& options);

}  // namespace fullbore::collect
