#include "base/clock.h"

#include <ctime>

namespace fullbore {

namespace {

int64_t ReadClock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * kNsPerSecond + t.tv_nsec;
}

}  // namespace

int64_t MonotonicNs() { return ReadClock(CLOCK_MONOTONIC); }
int64_t WallNs() { return ReadClock(CLOCK_REALTIME); }
int64_t ThreadCpuNs() { return ReadClock(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace fullbore
