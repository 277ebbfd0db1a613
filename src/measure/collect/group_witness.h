// Tells a signal that was sent to us alone, which we have to pass on, from one that was sent to everybody
// here (`kill %1`, a batch system's cancel, a service manager's stop), which the command has already:
// handlers that save a checkpoint must not run twice.
//
// The kernel does not say whom a signal was sent to. A small process beside the command, in the same group,
// session and control group, notes what it gets; it ends with us, however we end.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace fullbore::collect {

class GroupWitness {
 public:
  GroupWitness();
  ~GroupWitness();
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  // Whether the witness got this signal, too, since the last time it was asked. Waits a moment for it, and on
  // a busy machine until the witness had a core. False where no process could be started.
  bool SawToo(int signal);

 private:
  static constexpr int kSignals = 65;
  using Counts = std::array<std::atomic<uint32_t>, kSignals>;

  [[noreturn]] static void Watch(Counts& counts, pid_t parent);
  bool IsIdle() const;

  pid_t pid_ = -1;
  Counts* counts_ = nullptr;  // shared with the witness
  std::array<uint32_t, kSignals> answered_{};
};

}  // namespace fullbore::collect
