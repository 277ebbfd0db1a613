// Distinguishes a signal that was sent to us alone, which we have to pass on, from one that was sent to the
// whole group (`kill %1`, a batch system's cancel, a service manager's stop), which the command already has:
// handlers that save a checkpoint must not run twice.
//
// The kernel does not say to whom a signal was sent. So a small process in the same group, session and
// control group as the command notes the signals it receives; it ends with us, however we end.
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

  // Whether the witness, too, received this signal since the last call. Waits a moment for it, and on a busy
  // machine until the witness had a core. False if no witness could be started.
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
