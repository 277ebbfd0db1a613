// What each host thread was doing, to explain why the device had nothing to do. Built once from a trace;
// the spans of a thread no longer overlap, because the outermost wins: a synchronisation inside a
// checkpoint belongs to the checkpoint.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::timeline {

enum class HostState : uint8_t {
  kLoader,
  kSync,
  kCheckpoint,
  kValidation,
  kGarbageCollection,
  kWorking,  // inside framework or driver code, or in Python between two pieces of it
  kAway,     // inside nothing recorded for longer than Python needs between two operators
};

struct HostPiece {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  HostState state = HostState::kWorking;
  uint32_t call = kNone;  // the blocking call of kSync
};

class HostActivity {
 public:
  explicit HostActivity(const DeviceTrace& trace);

  // What `thread` did in [begin_ns, end_ns), in order and without gaps, appended to `pieces`.
  // While that thread is outside of everything, the main thread counts instead: the launching
  // thread may be waiting for it.
  void Look(uint16_t thread, int64_t begin_ns, int64_t end_ns, std::vector<HostPiece>* pieces) const {
    Look(thread, begin_ns, end_ns, true, pieces);
  }

  bool Blocks(uint32_t call) const { return blocking_[call]; }

 private:
  struct Span {
    int64_t begin_ns, end_ns;
  };
  struct Thread {
    std::vector<HostPiece> marks;  // all states but kWorking and kAway
    std::vector<Span> working;
  };

  void FindBlockingCalls(const DeviceTrace& trace);
  void FillThreads(const DeviceTrace& trace);
  // A thread that pauses for a moment is not away, however long the main thread has been waiting for it.
  void Look(uint16_t thread, int64_t begin_ns, int64_t end_ns, bool may_be_away,
            std::vector<HostPiece>* pieces) const;
  void LookOutsideMarks(uint16_t thread, int64_t begin_ns, int64_t end_ns, bool may_be_away,
                        std::vector<HostPiece>* pieces) const;

  std::vector<Thread> threads_;
  std::vector<bool> blocking_;  // by call
  uint16_t main_thread_;
  int64_t away_ns_;  // silence for longer than this is no way to the next launch
};

}  // namespace fullbore::timeline
