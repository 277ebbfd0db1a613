#include "measure/collect/oom_kills.h"

#include <algorithm>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "measure/probe/cgroup/cgroup.h"

namespace fullbore::collect {

namespace {

// "oom_kill 3" in /proc/vmstat, memory.events (v2) and memory.oom_control (v1).
std::optional<int64_t> CountIn(const std::string& path) {
  constexpr std::string_view kCounter = "oom_kill ";
  const auto text = ReadFile(path);
  if (!text) return std::nullopt;
  for (const std::string_view line : Split(*text, '\n')) {
    if (line.starts_with(kCounter)) return ParseInt(Trim(line.substr(kCounter.size())));
  }
  return std::nullopt;
}

}  // namespace

OomKills::OomKills(std::string root, int64_t command_pid)
    : root_(std::move(root)), command_pid_(command_pid), machine_at_start_(CountIn(root_ + "/proc/vmstat")) {
  Look();
}

void OomKills::Look() {
  const auto groups = ReadFile(root_ + "/proc/" + std::to_string(command_pid_) + "/cgroup");
  const auto mounts = ReadFile(root_ + "/proc/self/mountinfo");
  if (!groups || !mounts) return;
  const probe::Cgroup cgroup = probe::FindCgroup(root_, *groups, *mounts);
  for (const auto& [path, file] :
       {std::pair{&cgroup.unified, "/memory.events"}, std::pair{&cgroup.memory, "/memory.oom_control"}}) {
    if (!path->found()) continue;
    const std::string counter = path->own() + file;
    if (const auto count = CountIn(counter)) groups_at_start_.try_emplace(counter, *count);
  }
}

bool OomKills::Happened(bool command_was_killed) const {
  const bool in_group = std::any_of(groups_at_start_.begin(), groups_at_start_.end(), [](const auto& group) {
    return CountIn(group.first).value_or(group.second) > group.second;
  });
  if (in_group || (!command_was_killed && !groups_at_start_.empty())) return in_group;
  return machine_at_start_ && CountIn(root_ + "/proc/vmstat").value_or(0) > *machine_at_start_;
}

}  // namespace fullbore::collect
