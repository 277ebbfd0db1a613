#include "agent/devices.h"

#include <algorithm>

#include "base/clock.h"

namespace fullbore::agent {

namespace {

// A longer time between two looks (a driver that hung, a machine that slept) is of an unknown state.
constexpr int64_t kLongestNs = 30 * kNsPerSecond;

State StateOf(const Use& use) {
  if (use.worked.value_or(false)) return State::kBusy;
  if (use.processes == 0) return State::kNoProcess;
  return use.worked ? State::kIdle : State::kUnknown;
}

double& SecondsIn(Hold& hold, State state) { return hold.seconds[static_cast<size_t>(state)]; }

}  // namespace

const char* Name(State state) {
  constexpr const char* kNames[kStates] = {"busy", "idle", "no_process", "unknown"};
  return kNames[static_cast<size_t>(state)];
}

void Device::Update(int64_t t_ns, const std::optional<std::vector<Use>>& uses) {
  const int64_t passed_ns = seen_ns_ ? std::max<int64_t>(0, t_ns - *seen_ns_) : 0;
  const bool known = uses && passed_ns <= kLongestNs;
  seen_ns_ = t_ns;
  const double share =
      static_cast<double>(passed_ns) / 1e9 / static_cast<double>(std::max<size_t>(1, holds_.size()));
  if (!known) {
    for (auto& [holder, hold] : holds_) SecondsIn(hold, State::kUnknown) += share;
  }
  if (!uses) return;
  std::erase_if(holds_, [&](const auto& held) {
    return std::ranges::find(*uses, held.first, &Use::holder) == uses->end();
  });
  for (const Use& use : *uses) Take(use, t_ns, known ? share : 0);
}

void Device::Take(const Use& use, int64_t t_ns, double seconds) {
  const auto [held, is_new] = holds_.try_emplace(use.holder);
  Hold& hold = held->second;
  if (is_new) hold.since_ns_ = hold.busy_ns_ = hold.process_ns_ = t_ns;
  hold.held_ns = t_ns - hold.since_ns_;
  hold.processes = use.processes;
  hold.memory_bytes = use.memory_bytes;
  const bool works = use.worked.value_or(false);
  if (use.processes > 0 || works) hold.process_ns_ = t_ns;
  if (works) hold.busy_ns_ = t_ns;
  hold.worked |= works && !is_new;  // at the first look, it may be the work of who held it before
  hold.without_process_ns = t_ns - hold.process_ns_;
  // Without a process it does nothing, whether or not the device can tell.
  hold.idle_ns.reset();
  if (use.worked || use.processes == 0) hold.idle_ns = t_ns - hold.busy_ns_;
  if (!is_new) SecondsIn(hold, StateOf(use)) += seconds;
}

}  // namespace fullbore::agent
