#include "measure/collect/ending.h"

#include <signal.h>

#include <algorithm>

#include "base/clock.h"
#include "measure/probe/process/process_tree.h"

namespace fullbore::collect {

namespace {

constexpr int64_t kTermNs = 5 * kNsPerSecond;  // between SIGTERM and SIGKILL

}  // namespace

std::set<int64_t> Ending::Send(int signal) const {
  std::set<int64_t> pids;
  for (const int64_t pid : probe::ProcessTree("/proc", ancestor_, mark_).Scan()) {
    if (pid != ancestor_ && kill(static_cast<pid_t>(pid), signal) == 0) pids.insert(pid);
  }
  return pids;
}

// One that was not stopped yet may have made another in the meantime; one that is stopped makes none.
int64_t Ending::Pause(int signal) const {
  constexpr int kMostScans = 10;
  std::set<int64_t> known = Send(signal);
  const int64_t sent_ns = MonotonicNs();
  for (int scans = 1; scans < kMostScans; ++scans) {
    const std::set<int64_t> now = Send(signal);
    if (std::ranges::includes(known, now)) break;
    known = now;
  }
  return sent_ns;
}

void Ending::KillRest() const { (void)Send(SIGKILL); }

void Ending::Tick(int64_t now_ns) {
  if (!begun_ || killed_) return;
  if (term_ns_ == 0) {
    term_ns_ = now_ns;
    (void)Send(SIGTERM);
  } else if (now_ns - term_ns_ > kTermNs) {
    killed_ = true;
    (void)Send(SIGKILL);
  }
}

}  // namespace fullbore::collect
