#include "measure/collect/signals.h"

#include <unistd.h>

#include <initializer_list>

namespace fullbore::collect {

namespace {

sigset_t Set(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

sigset_t Watched() {
  return Set({SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGTSTP, SIGCONT});
}

}  // namespace

InheritedSignals InheritedSignals::Take() {
  InheritedSignals found;
  sigprocmask(SIG_SETMASK, nullptr, &found.mask_);
  sigaction(SIGPIPE, nullptr, &found.on_pipe_);
  return found;
}

void InheritedSignals::Restore() const {
  sigaction(SIGPIPE, &on_pipe_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

Signals::Signals() : inherited_(InheritedSignals::Take()) {
  const sigset_t watched = Watched();
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  fd_.reset(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  signal(SIGPIPE, SIG_IGN);  // for good: the report comes later, and our exit status is the command's
}

Signals::~Signals() {
  while (Next()) {
  }
  const sigset_t watched = Watched();
  sigprocmask(SIG_UNBLOCK, &watched, nullptr);
}

std::optional<signalfd_siginfo> Signals::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return info;
}

// The signal is raised while it is blocked, so that one which the terminal sent us already is the same stop.
void Signals::StopAs(int signal) {
  const sigset_t only = Set({signal});
  sigset_t before;
  sigprocmask(SIG_BLOCK, &only, &before);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace fullbore::collect
