#include "base/ending_signals.h"

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

}  // namespace fullbore
