#include "measure/collect/ending.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "measure/probe/process/process_tree.h"

namespace fullbore::collect {

namespace {

constexpr int64_t kTermNs = 5 * kNsPerSecond;         // between SIGTERM and SIGKILL
constexpr int64_t kRestNs = kNsPerSecond;             // for workers to notice that their parent is gone
constexpr int64_t kUnkillableNs = 10 * kNsPerSecond;  // after which nothing helps
constexpr timespec kPause = {0, 20 * 1'000'000};

}  // namespace

int Ending::Send(int signal) const {
  int reached = 0;
  for (const int64_t pid : probe::ProcessTree("/proc", 0, mark_).Scan()) {
    if (kill(static_cast<pid_t>(pid), signal) == 0) ++reached;
  }
  return reached;
}

void Ending::Pause(int signal) const { (void)Send(signal); }

void Ending::Tick(int64_t now_ns) {
  if (!begun_ || killed_) return;
  if (term_ns_ == 0) {
    term_ns_ = now_ns;
    (void)Send(SIGTERM);
    (void)kill(-leader_, SIGTERM);  // also one whose environment cannot be read
  } else if (now_ns - term_ns_ > kTermNs) {
    killed_ = true;
    (void)Send(SIGKILL);
    (void)kill(-leader_, SIGKILL);
  }
}

void Ending::EndRest() const {
  const int64_t begin_ns = MonotonicNs();
  while (MonotonicNs() - begin_ns < kUnkillableNs) {
    const bool patient = MonotonicNs() - begin_ns < kRestNs;
    if (Send(patient ? 0 : SIGKILL) == 0) return;
    nanosleep(&kPause, nullptr);
  }
}

}  // namespace fullbore::collect
