// Whether a process is alive, by its pid in /proc: only on this machine and in this PID namespace.
#pragma once

#include <cstdint>
#include <string>

namespace fullbore::collect {

bool IsAlive(int64_t pid);  // a zombie is not

// Its start time, in ticks since boot: the pid may have been reused since. Empty if there is no such process.
std::string BeginOf(int64_t pid);

}  // namespace fullbore::collect
