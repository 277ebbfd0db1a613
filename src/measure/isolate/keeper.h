// A process between us and a trial's command, which answers for all that the command starts: whatever loses its parent
// becomes the keeper's child, whether or not it has a session, a group or an environment of its own. When we let go, or
// die in whatever way, it kills what is left and, if we died, removes the scratch directories.
//
//   fullbore ── keeper ── command ── ...
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace fullbore::isolate {

class Keeper {
 public:
  // Forks twice. `become` runs in the command's process and ends in exec; if it returns, that is why the command could
  // not be started, and the process ends. It allocates memory: this process has one thread.
  // `lock` is a descriptor that the keeper holds, too. kUnavailable where no process can be made.
  static Result<Keeper> Start(const std::function<Error()>& become, const std::vector<std::string>& scratches,
                              int lock);
  Keeper(Keeper&&) noexcept = default;
  Keeper& operator=(Keeper&&) = delete;
  ~Keeper() { EndRest(); }

  pid_t pid() const { return pid_; }
  pid_t command() const { return command_; }
  // As waitpid reports it, once the command has ended; we then got a SIGCHLD. Never blocks. If somebody killed the keeper,
  // the command was killed with it.
  std::optional<int> status();

  // Kills all that is left, after a moment for ending by itself where the command has ended. Returns when nothing is left,
  // or after some seconds with what cannot be killed (a process in an uninterruptible wait).
  void EndRest();

 private:
  Keeper() = default;

  pid_t pid_ = -1, command_ = -1;
  UniqueFd lifeline_;  // closed when we die
  UniqueFd statuses_;
  std::optional<int> status_;
};

}  // namespace fullbore::isolate
