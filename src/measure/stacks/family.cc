#include "measure/stacks/family.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "measure/probe/process/process_stat.h"

namespace fullbore::stacks {

namespace {

struct Seen {
  int64_t parent = 0;
  uint64_t ticks = 0;
};

std::map<int64_t, Seen> AllProcesses(const std::string& proc) {
  std::map<int64_t, Seen> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(proc.c_str()), closedir);
  if (!directory) return all;
  while (const dirent* entry = readdir(directory.get())) {
    const auto pid = ParseInt(entry->d_name);
    if (!pid) continue;
    const auto text = ReadFile(fmt::format("{}/{}/stat", proc, *pid));
    const auto stat = text ? probe::ParseProcessStat(*text) : std::nullopt;
    if (stat && stat->alive()) all[*pid] = {stat->parent_pid, stat->cpu_ticks};
  }
  return all;
}

int RankOf(const std::string& directory) {
  const auto environment = ReadFile(directory + "/environ");
  if (!environment) return -1;
  for (const std::string_view one : Split(*environment, '\0')) {
    if (one.starts_with("RANK=")) return static_cast<int>(ParseInt(one.substr(5)).value_or(-1));
  }
  return -1;
}

}  // namespace

void Family::Look() {
  const std::map<int64_t, Seen> all = AllProcesses(proc_);
  std::vector<int64_t> next = {root_};
  while (!next.empty()) {
    const int64_t pid = next.back();
    next.pop_back();
    const auto seen = all.find(pid);
    if (seen == all.end()) continue;
    if (!members_.contains(pid)) {
      Admit(pid, seen->second.parent);
      members_[pid].first_ticks = seen->second.ticks;
    }
    members_[pid].last_ticks = seen->second.ticks;
    for (const auto& [other, it] : all) {
      if (it.parent == pid && other != pid) next.push_back(other);
    }
  }
}

// A worker inherits its trainer's $RANK; a launcher has none.
void Family::Admit(int64_t pid, int64_t parent) {
  Member member;
  member.parent = parent;
  member.rank = RankOf(fmt::format("{}/{}", proc_, pid));
  const auto above = members_.find(parent);
  const bool of_trainer = above != members_.end() && above->second.role != "other" &&
                          (above->second.rank >= 0 || member.rank < 0);
  member.role = of_trainer ? "loader" : pid == root_ || member.rank >= 0 ? "trainer" : "other";
  members_[pid] = member;
}

int64_t Family::CpuNsOf(int64_t pid) const {
  static const int64_t ns_per_tick = kNsPerSecond / sysconf(_SC_CLK_TCK);
  const auto found = members_.find(pid);
  if (found == members_.end()) return 0;
  return static_cast<int64_t>(found->second.last_ticks - found->second.first_ticks) * ns_per_tick;
}

int64_t Family::TrainerOf(int64_t pid) const {
  auto at = members_.find(pid);
  while (at != members_.end() && at->second.role == "loader") {
    pid = at->second.parent;
    at = members_.find(pid);
  }
  return pid;
}

}  // namespace fullbore::stacks
