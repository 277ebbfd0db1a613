// How many cores this process may use: its affinity, and the CPU quota of its cgroup (a container's limit).
#pragma once

#include <string>

namespace fullbore {

// At least 1. `root` is prepended to /proc and /sys.
int UsableCores(const std::string& root = "");

}  // namespace fullbore
