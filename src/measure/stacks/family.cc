#include "measure/stacks/family.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
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

// Of all processes, or of the threads below /proc/PID/task.
std::map<int64_t, Seen> AllBelow(const std::string& proc) {
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

// What its environment says of a process.
void ReadEnvironment(const std::string& directory, Member& member) {
  constexpr std::string_view kRank = "RANK=", kThreads = "OMP_NUM_THREADS=";
  const auto environment = ReadFile(directory + "/environ");
  if (!environment) return;
  for (const std::string_view one : Split(*environment, '\0')) {
    if (one.starts_with(kRank))
      member.rank = static_cast<int>(ParseInt(one.substr(kRank.size())).value_or(-1));
    if (one.starts_with(kThreads)) member.omp_threads = ParseInt(one.substr(kThreads.size()));
  }
}

// A thread of a pool computes about as long as the others; those that feed queues or print do not.
constexpr double kPartOfTheBusiest = 0.3;

}  // namespace

void Family::Look() {
  const std::map<int64_t, Seen> all = AllBelow(proc_);
  std::vector<int64_t> next = {root_};
  while (!next.empty()) {
    const int64_t pid = next.back();
    next.pop_back();
    const auto seen = all.find(pid);
    if (seen == all.end()) continue;
    if (!members_.contains(pid)) {
      Admit(pid, seen->second.parent);
      members_[pid].ticks.first = seen->second.ticks;
    }
    Member& member = members_[pid];
    member.ticks.last = seen->second.ticks;
    if (member.role == "trainer") {
      for (const auto& [thread, it] : AllBelow(fmt::format("{}/{}/task", proc_, pid)))
        member.threads.try_emplace(thread, Ticks{it.ticks, it.ticks}).first->second.last = it.ticks;
    }
    for (const auto& [other, it] : all) {
      if (it.parent == pid && other != pid) next.push_back(other);
    }
  }
}

// A worker inherits its trainer's $RANK; a launcher has none.
void Family::Admit(int64_t pid, int64_t parent) {
  Member member;
  member.parent = parent;
  ReadEnvironment(fmt::format("{}/{}", proc_, pid), member);
  const auto above = members_.find(parent);
  const bool of_trainer = above != members_.end() && above->second.role != "other" &&
                          (above->second.rank >= 0 || member.rank < 0);
  member.role = of_trainer ? "loader" : pid == root_ || member.rank >= 0 ? "trainer" : "other";
  members_[pid] = member;
}

void Family::SetRole(int64_t pid, const std::string& role) {
  if (const auto member = members_.find(pid); member != members_.end()) member->second.role = role;
}

int64_t Family::PoolOf(int64_t pid) const {
  const auto member = members_.find(pid);
  if (member == members_.end()) return 0;
  uint64_t most = 0;
  for (const auto& [thread, ticks] : member->second.threads) most = std::max(most, ticks.last - ticks.first);
  return most == 0 ? 0 : std::ranges::count_if(member->second.threads, [&](const auto& thread) {
    const auto taken = static_cast<double>(thread.second.last - thread.second.first);
    return taken >= kPartOfTheBusiest * static_cast<double>(most);
  });
}

int64_t Family::CpuNsOf(int64_t pid) const {
  static const int64_t ns_per_tick = kNsPerSecond / sysconf(_SC_CLK_TCK);
  const auto found = members_.find(pid);
  if (found == members_.end()) return 0;
  return static_cast<int64_t>(found->second.ticks.last - found->second.ticks.first) * ns_per_tick;
}

bool Family::UsesDevice(int64_t pid) const {
  // NVIDIA's driver, the same within WSL, and AMD's.
  constexpr std::string_view kDevices[] = {"/dev/nvidia", "/dev/dxg", "/dev/kfd"};
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("{}/{}/fd", proc_, pid), gone)) {
    std::error_code closed;
    const std::string target = std::filesystem::read_symlink(entry.path(), closed).string();
    if (std::ranges::any_of(kDevices, [&](std::string_view device) { return target.starts_with(device); }))
      return true;
  }
  return false;
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
