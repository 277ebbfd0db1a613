// Time is nanoseconds on CLOCK_MONOTONIC everywhere; a run records one offset to the wall clock.
#pragma once

#include <cstdint>

namespace fullbore {

inline constexpr int64_t kNsPerSecond = 1'000'000'000;
inline constexpr int64_t kNsPerMs = 1'000'000;

int64_t MonotonicNs();
int64_t WallNs();       // since 1970-01-01 UTC
int64_t ThreadCpuNs();  // that the calling thread has used

}  // namespace fullbore
