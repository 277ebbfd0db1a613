// Who starts the command where we do not: the plugin of Slurm (src/slurm), in the process that starts the tasks of a job.
// We are told what is going to run, say what its environment needs, and hear how it ended; it never waits for us longer
// than it wants to.
//
// We speak over a socket of packets (SOCK_SEQPACKET). A packet is texts that each end with a NUL, of which the first says
// what it is:
//
//   from the starter   begin        the number of tasks here, the working directory, the words of the command
//   from us            environment  NAME=value... to be added to that of each task; or
//                      refused      why nothing is recorded
//   from the starter   task         the pid of the first task, which is about to execute the command, and NAME=value...
//                      exit         how a task ended, as wait(2) has it
//
// The end of the stream says that the starter has ended, or would not wait for the environment: before `task`, nothing of
// the run may be left.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace fullbore::collect {

class Starter {
 public:
  explicit Starter(UniqueFd socket) : socket_(std::move(socket)) {}

  struct Beginning {
    int64_t tasks = 1;
    std::string directory;
    std::vector<std::string> command;
  };
  // From here on no alarm rings that was set for a recorder that hangs before it listens.
  Result<Beginning> WaitForBeginning();
  // Says what the environment needs, and waits for the pid of the first task.
  Result<pid_t> WaitForTask(const std::map<std::string, std::string>& environment);
  void Refuse(const std::string& why);

  // Takes what has come, without waiting. Whether all tasks have ended, or nobody will say so any more.
  bool IsOver();
  // Of the task that ended worst, as wait(2) has it; nothing where the starter ended before its tasks.
  std::optional<int> status() const { return status_; }
  // Of the first task's environment, as far as we were told; null where unset.
  const char* Variable(const std::string& name) const;

 private:
  using Texts = std::vector<std::string>;
  std::optional<Texts> Receive(bool wait);  // nothing where there is none yet, or none any more (`gone_`)
  bool Send(const Texts& texts);
  void TakeExit(const Texts& texts);

  UniqueFd socket_;
  bool gone_ = false;
  int64_t running_ = 1;
  std::optional<int> worst_, status_;
  std::map<std::string, std::string> variables_;
};

// "exit\0256\0" for {"exit", "256"}, and back.
std::string PacketOf(const std::vector<std::string>& texts);
std::vector<std::string> TextsOf(std::string_view packet);

}  // namespace fullbore::collect
