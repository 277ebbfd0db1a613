#include "base/ending_signals.h"

#include <sys/signalfd.h>

#include <initializer_list>

namespace fullbore {

// A signal that is ignored and blocked is kept all the same, for signalfd to read.
sigset_t EndingSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
    struct sigaction found {};
    sigaction(signal, nullptr, &found);
    if (found.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

bool AsksToEnd(int signal) {
  const sigset_t set = EndingSignals();
  return sigismember(&set, signal) == 1;
}

UniqueFd HeldEndingSignals() {
  const sigset_t signals = EndingSignals();
  (void)pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC));
}

}  // namespace fullbore
