#include "measure/collect/ending.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "measure/probe/process/process_tree.h"

namespace fullbore::collect {

namespace {

constexpr int64_t kInterruptNs =
    10 * kNsPerSecond;  // for what a script does on Ctrl-C, as to write a checkpoint
constexpr int64_t kTermNs = 5 * kNsPerSecond;

}  // namespace

constexpr Ending::Demand Ending::kOfTrial[] = {{SIGTERM, false, kTermNs}, {SIGKILL, false, 0}};
constexpr Ending::Demand Ending::kAsCtrlC[] = {
    {SIGINT, true, kInterruptNs}, {SIGTERM, false, kTermNs}, {SIGKILL, false, 0}};

Ending Ending::OfTrial(pid_t keeper, std::string mark) { return {keeper, true, std::move(mark), kOfTrial}; }

Ending Ending::AsCtrlC(pid_t command, std::string mark) {
  return {command, false, std::move(mark), kAsCtrlC};
}

std::set<int64_t> Ending::Send(int signal, bool only_our_group) const {
  std::set<int64_t> pids;
  for (const int64_t each : probe::ProcessTree("/proc", ancestor_, mark_).Scan()) {
    const auto pid = static_cast<pid_t>(each);
    const bool is_meant =
        !(ancestor_stays_ && pid == ancestor_) && !(only_our_group && getpgid(pid) != getpgrp());
    if (is_meant && kill(pid, signal) == 0) pids.insert(pid);
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

void Ending::EndRest() {
  constexpr auto kPause = std::chrono::milliseconds(20);
  constexpr int kNothing = 0;  // only whether somebody is there
  while (!demands_.empty() && !Send(kNothing).empty()) {
    Tick(MonotonicNs());
    std::this_thread::sleep_for(kPause);
  }
}

void Ending::KillRest() const { (void)Send(SIGKILL); }

void Ending::Tick(int64_t now_ns) {
  if (!begun_ || demands_.empty() || now_ns < due_ns_) return;
  const Demand& demand = demands_.front();
  (void)Send(demand.signal, demand.only_our_group);
  due_ns_ = now_ns + demand.patience_ns;
  demands_ = demands_.subspan(1);
}

}  // namespace fullbore::collect
