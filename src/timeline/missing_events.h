// Which of a process's steps cannot be told, because events are missing in them. A ring that is written faster than it is
// read overwrites its oldest events; the numbers of those that are read then jump. With the events the ends of nobody
// knows how many steps are gone: what lies between the last end that was seen and the next one is no step.
#pragma once

#include <cstdint>
#include <utility>

namespace fullbore::timeline {

class MissingEvents {
 public:
  // Of each event that was read, its number in the ring: 0 where it has none.
  void OnEvent(uint64_t sequence) {
    const uint64_t before = std::exchange(last_, sequence);
    missing_ |= before > 0 && sequence > before + 1;
  }

  // Whether some are missing in the step that ends with the latest one.
  bool InStep(int64_t begin_ns, int64_t end_ns) {
    const bool missing = std::exchange(missing_, false);
    if (missing) ns_ += end_ns - begin_ns;
    return missing;
  }

  int64_t ns() const { return ns_; }  // of all such steps

 private:
  uint64_t last_ = 0;
  bool missing_ = false;  // since the last end of a step
  int64_t ns_ = 0;
};

}  // namespace fullbore::timeline
