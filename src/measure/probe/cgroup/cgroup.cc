#include "measure/probe/cgroup/cgroup.h"

#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/text.h"
#include "measure/probe/proc/mounts.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

namespace {

// v1 writes "no limit" as the largest multiple of a page below 2^63; nobody means a limit of half of that.
constexpr uint64_t kNoLimitBytes = uint64_t{1} << 62;

bool HasWord(std::string_view list, std::string_view word) {
  const std::vector<std::string_view> words = Split(list, ',');
  return std::ranges::find(words, word) != words.end();
}

// The path of the process in the hierarchy of `controller` ("" for v2), from lines like "4:memory:/a/b"
// and "0::/a/b".
std::optional<std::string> PathIn(std::string_view cgroup_text, std::string_view controller) {
  LineCursor lines(cgroup_text);
  for (std::string_view line; lines.Next(line);) {
    const size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : HasWord(controllers, controller)) {
      return std::string(line.substr(second + 1));
    }
  }
  return std::nullopt;
}

CgroupPath Locate(const std::string& root, const std::vector<Mount>& mounts, std::string_view cgroup_text,
                  std::string_view controller) {
  const auto mount = std::ranges::find_if(mounts, [&](const Mount& m) {
    return controller.empty() ? m.file_system == "cgroup2"
                              : m.file_system == "cgroup" && HasWord(m.super_options, controller);
  });
  std::optional<std::string> path = PathIn(cgroup_text, controller);
  if (mount == mounts.end() || !path) return {};
  // In a container without a cgroup namespace the path is the host's, while the
  // mount shows only a part of it.
  if (mount->root != "/" && path->starts_with(mount->root)) *path = path->substr(mount->root.size());
  const std::string base = root + mount->mount_point;
  while (path->ends_with('/')) path->pop_back();
  if (access((base + *path).c_str(), F_OK) != 0) path->clear();
  CgroupPath found;
  while (!path->empty()) {
    found.directories.push_back(base + *path);
    path->resize(path->rfind('/') == std::string::npos ? 0 : path->rfind('/'));
  }
  found.directories.push_back(base);
  return found;
}

template <typename T, typename ReadLimit>
std::optional<T> Tightest(const CgroupPath& path, ReadLimit read_limit) {
  std::optional<T> tightest;
  for (const std::string& directory : path.directories) {
    const std::optional<T> limit = read_limit(directory);
    if (limit && (!tightest || *limit < *tightest)) tightest = limit;
  }
  return tightest;
}

template <typename T>
std::optional<T> Smaller(std::optional<T> a, std::optional<T> b) {
  if (!a) return b;
  return b ? std::min(*a, *b) : a;
}

std::optional<double> CpuMax(const std::string& directory) {  // "150000 100000", "max 100000"
  const Result<std::string> text = ReadFile(directory + "/cpu.max");
  if (!text) return std::nullopt;
  WordCursor words(*text);
  const auto quota = words.NextCount();
  const auto period = words.NextCount();
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> CfsQuota(const std::string& directory) {  // a quota of -1 means none
  const auto quota = ReadCount(directory + "/cpu.cfs_quota_us");
  const auto period = ReadCount(directory + "/cpu.cfs_period_us");
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<uint64_t> LimitInBytes(const std::string& directory) {
  const auto limit = ReadCount(directory + "/memory.limit_in_bytes");
  return limit && *limit < kNoLimitBytes ? limit : std::nullopt;
}

std::optional<uint64_t> LimitOfUnified(const std::string& directory) {
  return ReadCount(directory + "/memory.max");
}

// What a limit leaves. Shared memory is counted as page cache, but cannot be dropped.
std::optional<uint64_t> LeftOf(std::optional<uint64_t> limit, std::optional<uint64_t> used,
                               const std::string& directory, const char* cache, const char* shared) {
  if (!limit || !used) return std::nullopt;
  const Result<std::string> stat = ReadFile(directory + "/memory.stat");
  const uint64_t cached = stat ? CountAfter(*stat, cache).value_or(0) : 0;
  const uint64_t kept = stat ? CountAfter(*stat, shared).value_or(0) : 0;
  const uint64_t taken = *used - std::min(*used, cached - std::min(cached, kept));
  return *limit - std::min(*limit, taken);
}

std::optional<uint64_t> LeftInUnified(const std::string& directory) {
  return LeftOf(LimitOfUnified(directory), ReadCount(directory + "/memory.current"), directory, "file",
                "shmem");
}

std::optional<uint64_t> LeftInMemory(const std::string& directory) {
  return LeftOf(LimitInBytes(directory), ReadCount(directory + "/memory.usage_in_bytes"), directory,
                "total_cache", "total_shmem");
}

std::optional<int64_t> ReadCpuList(const CgroupPath& path, const char* file) {
  if (!path.found()) return std::nullopt;
  const Result<std::string> text = ReadFile(path.own() + file);
  return text ? CountCpuList(Trim(*text)) : std::nullopt;
}

}  // namespace

Cgroup FindCgroup(const std::string& root, const std::string& cgroup_text, const std::string& mountinfo) {
  const std::vector<Mount> mounts = ParseMountinfo(mountinfo);
  return {Locate(root, mounts, cgroup_text, ""), Locate(root, mounts, cgroup_text, "memory"),
          Locate(root, mounts, cgroup_text, "cpu"), Locate(root, mounts, cgroup_text, "cpuset")};
}

std::optional<double> CpuLimitCores(const Cgroup& cgroup) {
  return Smaller(Tightest<double>(cgroup.unified, CpuMax), Tightest<double>(cgroup.cpu, CfsQuota));
}

std::optional<uint64_t> MemoryLimitBytes(const Cgroup& cgroup) {
  return Smaller(Tightest<uint64_t>(cgroup.unified, LimitOfUnified),
                 Tightest<uint64_t>(cgroup.memory, LimitInBytes));
}

std::optional<uint64_t> MemoryLeftBytes(const Cgroup& cgroup) {
  return Smaller(Tightest<uint64_t>(cgroup.unified, LeftInUnified),
                 Tightest<uint64_t>(cgroup.memory, LeftInMemory));
}

std::optional<int64_t> CpusetCores(const Cgroup& cgroup) {
  return Smaller(ReadCpuList(cgroup.unified, "/cpuset.cpus.effective"),
                 ReadCpuList(cgroup.cpuset, "/cpuset.effective_cpus"));
}

std::optional<int64_t> CountCpuList(std::string_view list) {
  int64_t cores = 0;
  for (const std::string_view part : Split(list, ',')) {
    const size_t dash = part.find('-');
    const auto first = ParseInt(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseInt(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first) return std::nullopt;
    cores += *last - *first + 1;
  }
  return cores;
}

}  // namespace fullbore::probe
