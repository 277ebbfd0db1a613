// The signals of a run: while it lasts, what a terminal, a scheduler or a person sends to end, stop or resize
// is read from a descriptor, never by a handler. A closed stderr is no reason to die, either.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <optional>

#include "base/fd.h"

namespace fullbore::collect {

// How this process was started: a command under us must find the same (nohup ignores SIGHUP, a job runner may
// have blocked signals).
class InheritedSignals {
 public:
  static InheritedSignals Take();
  void Restore() const;  // safe in a forked child

 private:
  sigset_t mask_{};
  struct sigaction on_pipe_ {};
};

class Signals {
 public:
  Signals();
  // Drops what came meanwhile: an impatient second Ctrl-C was meant for the command, not for its report.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }  // readable when Next() has something
  std::optional<signalfd_siginfo> Next();
  const InheritedSignals& inherited() const { return inherited_; }

  // Stops this process as `signal` (SIGTSTP, SIGTTIN, SIGTTOU) would have, until somebody continues it.
  // Returns at once where nobody could: the kernel does not stop a group that no shell looks after.
  void StopAs(int signal);

 private:
  InheritedSignals inherited_;
  UniqueFd fd_;
};

}  // namespace fullbore::collect
