// Whether a recorder has been silent for too long, by our own clock: that of the file may be of another machine, or of a
// time before this one slept.
#pragma once

#include <cstdint>
#include <utility>

#include "watch/run_index.h"

namespace fullbore::watch {

class Pulse {
 public:
  // `end_ns`: what the file says is recorded last.
  bool IsGone(int64_t end_ns, int64_t now_ns) {
    if (std::exchange(end_ns_, end_ns) != end_ns) moved_ns_ = now_ns;
    return now_ns - moved_ns_ > kSilentNs;
  }

 private:
  int64_t end_ns_ = -1, moved_ns_ = 0;
};

}  // namespace fullbore::watch
