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

// All that can be blocked. A fault of our own (SIGSEGV, SIGABRT, ...) still ends us: the kernel blocks only
// those that others send under these names. SIGTTIN and SIGTTOU are how the terminal stops a background job
// that reads or writes, and SIGPIPE and SIGXFSZ are write errors.
sigset_t Watched() {
  sigset_t set;
  sigfillset(&set);
  for (const int signal : {SIGKILL, SIGSTOP, SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ}) sigdelset(&set, signal);
  return set;
}

// The signals with which a person or a service manager ends and stops programs.
sigset_t OfPeople() { return Set({SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD, SIGTSTP, SIGCONT}); }

}  // namespace

InheritedSignals InheritedSignals::Take() {
  InheritedSignals found;
  sigprocmask(SIG_SETMASK, nullptr, &found.mask_);
  sigaction(SIGPIPE, nullptr, &found.on_pipe_);
  sigaction(SIGXFSZ, nullptr, &found.on_file_size_);
  return found;
}

void InheritedSignals::Restore() const {
  sigaction(SIGPIPE, &on_pipe_, nullptr);
  sigaction(SIGXFSZ, &on_file_size_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

Signals::Signals() : inherited_(InheritedSignals::Take()) {
  for (const int of_a_write : {SIGPIPE, SIGXFSZ})
    signal(of_a_write, SIG_IGN);  // for good: the report comes later
}

void Signals::Watch() {
  const sigset_t watched = Watched();
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  fd_.reset(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

Signals::~Signals() {
  if (!fd_.valid()) return;
  while (Next()) {
  }
  const sigset_t heard = OfPeople();
  sigprocmask(SIG_UNBLOCK, &heard, nullptr);
}

std::optional<signalfd_siginfo> Signals::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return info;
}

// The signal is raised while it is blocked, so that one that the terminal already sent
// us merges into the same stop.
void Signals::StopAs(int signal) {
  const sigset_t only = Set({signal});
  sigset_t before;
  sigprocmask(SIG_BLOCK, &only, &before);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace fullbore::collect
