// The command under measurement: started in our own process group and session with our own descriptors, so
// that the terminal, Ctrl-C, Ctrl-Z, pipes and the exit status behave as without us.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/collect/signals.h"
#include "measure/collect/starter.h"
#include "measure/isolate/keeper.h"
#include "measure/isolate/protection.h"

namespace fullbore::collect {

// What a shell would return for a command that cannot be started.
inline constexpr int kStatusNotExecutable = 126;
inline constexpr int kStatusNotFound = 127;

class Command {
 public:
  // A command apart from the terminal and from the user's files: a session of its own, whose id is its pid; it reads
  // nothing and inherits no descriptor, what it prints goes to this one, it and all that it starts end with this process,
  // and first of all where memory ends.
  struct Apart {
    int output = -1;
    int scratch_lock = -1;  // of the scratch directory: it stays locked while anything of the command lives
    isolate::Apart files;
    std::vector<std::string> removed_if_we_die;  // directories
  };

  // `environment` is added to ours; the child's signal state is as this process found it. Fails
  // with kNotFound or kPermission if the command cannot be executed, and with kUnavailable if no
  // process can be created for it.
  static Result<Command> Start(const std::vector<std::string>& words,
                               const std::map<std::string, std::string>& environment,
                               const InheritedSignals& signals,
                               const std::optional<Apart>& apart = std::nullopt);

  // One that somebody else starts, once we have said what its environment needs. It is never sent a signal: one that asks
  // us to end ends the recording alone. `starter` outlives the command.
  static Result<Command> StartedBy(Starter& starter, const std::map<std::string, std::string>& environment);

  // Replaces this process by the command, with our environment: if it cannot be a child, it still runs.
  // Returns only if it cannot be executed.
  static Error Become(const std::vector<std::string>& words, const InheritedSignals& signals);

  pid_t pid() const { return pid_; }
  // What all processes of a command that is apart descend from; otherwise the command itself.
  pid_t ancestor() const { return keeper_ ? keeper_->pid() : pid_; }
  void Send(int signal);

  enum class Change { kNone, kStopped, kContinued, kEnded };
  Change Poll();  // never blocks
  // As a shell reports it: the exit status, or 128 + the signal that ended it. Known
  // once Poll() returned kEnded, unless the command was left to itself or its starter ended before it.
  std::optional<int> exit_status() const { return exit_status_; }
  std::optional<int> ended_by_signal() const { return ended_by_signal_; }
  std::optional<int> stopped_by_signal() const { return stopped_by_signal_; }  // while it is stopped

  // Of a command that is apart: ends whatever it started and left behind (Keeper::EndRest).
  void EndRest();

 private:
  static Result<Command> StartApart(std::vector<char*>& argv, std::vector<char*>& envp,
                                    const InheritedSignals& signals, const Apart& apart);
  void SetEnd(int status);
  Change PollStarter();

  std::optional<isolate::Keeper> keeper_;  // of a command that is apart
  Starter* starter_ = nullptr;             // of one that somebody else starts
  bool left_ = false;                      // to itself: we were asked to end
  pid_t pid_ = -1;
  std::optional<int> exit_status_;
  std::optional<int> ended_by_signal_;
  std::optional<int> stopped_by_signal_;
};

}  // namespace fullbore::collect
