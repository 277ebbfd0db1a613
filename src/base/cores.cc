#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>

#include "base/fd.h"
#include "base/text.h"

namespace fullbore {
namespace {

int CoresOfAffinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;  // more than 1,024 cores: let the tuner find out
  return std::max(1, CPU_COUNT(&set));
}

// "max 100000" or "150000 100000": microseconds of CPU per period.
double QuotaOf(const std::string& cpu_max) {
  const auto words = Words(cpu_max);
  if (words.size() != 2) return HUGE_VAL;
  const auto quota = ParseDouble(words[0]), period = ParseDouble(words[1]);
  return quota && period && *period > 0 ? *quota / *period : HUGE_VAL;
}

// The path of the process's cgroup (version 2) below /sys/fs/cgroup.
std::string CgroupPath(const std::string& root) {
  const auto text = ReadFile(root + "/proc/self/cgroup");
  if (!text.ok()) return "";
  for (const auto line : Split(*text, '\n')) {
    if (line.starts_with("0::")) return std::string(line.substr(3));
  }
  return "";
}

}  // namespace

int UsableCores(const std::string& root) {
  double cores = CoresOfAffinity();
  // Any level above may have the tightest limit. Inside a
  // container the path is "/" and its own limit is at the top.
  for (std::string path = CgroupPath(root);;) {
    if (const auto text = ReadFile(root + "/sys/fs/cgroup" + path + "/cpu.max"); text.ok()) {
      cores = std::min(cores, std::ceil(QuotaOf(*text)));
    }
    if (path.empty() || path == "/") break;
    path.resize(path.rfind('/'));
  }
  return std::max(1, static_cast<int>(cores));
}

}  // namespace fullbore
