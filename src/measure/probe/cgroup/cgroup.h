// Finds the control group of a process: its directory in the unified hierarchy (v2), or one directory a
// controller (v1). Hybrid machines have both, with some controllers here and some there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fullbore::probe {

// A group's directory and those of its ancestors, the group first: a limit of any of them binds.
struct CgroupPath {
  std::vector<std::string> directories;  // empty where the hierarchy is not mounted

  bool found() const { return !directories.empty(); }
  const std::string& own() const { return directories.front(); }
};

struct Cgroup {
  CgroupPath unified;              // v2
  CgroupPath memory, cpu, cpuset;  // v1
};

// `cgroup_text`: the text of /proc/PID/cgroup. `mountinfo`: that of /proc/self/mountinfo.
Cgroup FindCgroup(const std::string& root, const std::string& cgroup_text, const std::string& mountinfo);

// The tightest limit over the group and its ancestors; nothing where there is none.
std::optional<double> CpuLimitCores(const Cgroup& cgroup);
std::optional<uint64_t> MemoryLimitBytes(const Cgroup& cgroup);
std::optional<int64_t> CpusetCores(const Cgroup& cgroup);

// The number of cores in a list as the kernel writes it: "0-3,8" is 5.
std::optional<int64_t> CountCpuList(std::string_view list);

}  // namespace fullbore::probe
