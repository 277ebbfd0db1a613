// Finds the control group of a process: its directory in the unified hierarchy (v2), or one directory per
// controller (v1). Hybrid machines have both, with some controllers in each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fullbore::probe {

// A group's directory and those of its ancestors, the group first: a limit on any of them applies.
struct CgroupPath {
  std::vector<std::string> directories;  // empty if the hierarchy is not mounted

  bool found() const { return !directories.empty(); }
  const std::string& own() const { return directories.front(); }
};

struct Cgroup {
  CgroupPath unified;              // v2
  CgroupPath memory, cpu, cpuset;  // v1
};

// `cgroup_text`: the text of /proc/PID/cgroup. `mountinfo`: that of /proc/self/mountinfo.
Cgroup FindCgroup(const std::string& root, const std::string& cgroup_text, const std::string& mountinfo);

// The tightest limit of the group and its ancestors; nothing if there is none.
std::optional<double> CpuLimitCores(const Cgroup& cgroup);
std::optional<uint64_t> MemoryLimitBytes(const Cgroup& cgroup);
// What the fullest of them leaves; cache that could be dropped counts as left.
std::optional<uint64_t> MemoryLeftBytes(const Cgroup& cgroup);
std::optional<int64_t> CpusetCores(const Cgroup& cgroup);

// The number of cores in a list as the kernel writes it: 5 for "0-3,8".
std::optional<int64_t> CountCpuList(std::string_view list);

}  // namespace fullbore::probe
