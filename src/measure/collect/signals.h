// The signals of a run: while the command runs, whatever a terminal, a scheduler, a timer or a person sends
// is read from a descriptor, never by a handler, and never ends this process: a recorder that died would lose
// the command's exit status. Nor does a closed stderr or a file size limit.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <optional>

#include "base/fd.h"

namespace fullbore::collect {

// The signal state in which this process was started: a command under us must find the same (nohup ignores
// SIGHUP, a job runner may have blocked signals).
class InheritedSignals {
 public:
  static InheritedSignals Take();
  void Restore() const;  // safe in a forked child

 private:
  sigset_t mask_{};
  struct sigaction on_pipe_ {};
  struct sigaction on_file_size_ {};
};

class Signals {
 public:
  Signals();  // from here on a write that fails is an error, not a signal
  // Drops what came in the meantime: an impatient second Ctrl-C was meant for the command, not for its
  // report. From then on, signals that end or stop a program work again; those of a timer or a limit stay
  // blocked, because they would only cost the report.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void Watch();                         // from here on Next() gets all that comes
  int fd() const { return fd_.get(); }  // readable when Next() has something
  std::optional<signalfd_siginfo> Next();
  const InheritedSignals& inherited() const { return inherited_; }

  // Stops this process as `signal` (SIGTSTP, SIGTTIN, SIGTTOU) would have, until somebody continues it.
  // Returns at once if nobody could: the kernel does not stop an orphaned process group.
  void StopAs(int signal);

 private:
  InheritedSignals inherited_;
  UniqueFd fd_;
};

}  // namespace fullbore::collect
