#include "measure/probe/proc/memory_left.h"

#include <algorithm>

#include "base/fd.h"
#include "measure/probe/cgroup/cgroup.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

std::optional<int64_t> MemoryLeft(const std::string& root) {
  std::optional<int64_t> left;
  const auto meminfo = ReadFile(root + "/proc/meminfo");
  if (const auto kb = meminfo ? CountAfter(*meminfo, "MemAvailable:") : std::nullopt)  // as proc(5) says
    left = static_cast<int64_t>(*kb) * 1'024;
  const auto groups = ReadFile(root + "/proc/self/cgroup");
  const auto mounts = ReadFile(root + "/proc/self/mountinfo");
  if (!groups || !mounts) return left;
  if (const auto in_group = MemoryLeftBytes(FindCgroup(root, *groups, *mounts)))
    left = std::min(left.value_or(INT64_MAX), static_cast<int64_t>(*in_group));
  return left;
}

}  // namespace fullbore::probe
