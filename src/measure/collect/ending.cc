#include "measure/collect/ending.h"

#include <signal.h>

#include "base/clock.h"
#include "measure/probe/process/process_tree.h"

namespace fullbore::collect {

namespace {

constexpr int64_t kTermNs = 5 * kNsPerSecond;  // between SIGTERM and SIGKILL

}  // namespace

void Ending::Send(int signal) const {
  for (const int64_t pid : probe::ProcessTree("/proc", ancestor_, mark_).Scan()) {
    if (pid != ancestor_) (void)kill(static_cast<pid_t>(pid), signal);
  }
}

void Ending::Pause(int signal) const { Send(signal); }

void Ending::KillRest() const { Send(SIGKILL); }

void Ending::Tick(int64_t now_ns) {
  if (!begun_ || killed_) return;
  if (term_ns_ == 0) {
    term_ns_ = now_ns;
    Send(SIGTERM);
  } else if (now_ns - term_ns_ > kTermNs) {
    killed_ = true;
    Send(SIGKILL);
  }
}

}  // namespace fullbore::collect
