#include "measure/probe/process/process_tree.h"

#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/text.h"
#include "measure/probe/process/process_stat.h"

namespace fullbore::probe {

ProcessTree::ProcessTree(std::string proc_directory, int64_t root_pid, const std::string& mark)
    : proc_directory_(std::move(proc_directory)),
      mark_(mark.empty() ? "" : "FULLBORE_RUN=" + mark),
      own_pid_(getpid()) {
  if (root_pid > 0) claimed_.insert(root_pid);
  if (root_pid == own_pid_) members_.insert(root_pid);  // who is not scanned: its children are
}

void ProcessTree::Claim(int64_t pid) {
  if (members_.contains(pid)) return;
  claimed_.insert(pid);
  known_.erase(pid);
}

void ProcessTree::Forget(int64_t pid) {
  members_.erase(pid);
  claimed_.erase(pid);
}

std::vector<int64_t> ProcessTree::Scan() {
  std::vector<Candidate> candidates = NewProcesses();
  std::vector<int64_t> joined;
  Join(candidates, joined);
  if (mark_.empty()) return joined;
  for (const Candidate& candidate : candidates) {
    if (IsMarked(candidate.pid)) claimed_.insert(candidate.pid);
  }
  Join(candidates, joined);  // with the children of those that carry the mark
  return joined;
}

std::vector<ProcessTree::Candidate> ProcessTree::NewProcesses() {
  if (directory_)
    rewinddir(directory_.get());
  else
    directory_.reset(opendir(proc_directory_.c_str()));
  if (!directory_) return {};
  ++scans_;
  std::vector<Candidate> candidates;
  while (const dirent* entry = readdir(directory_.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const std::optional<int64_t> pid = ParseInt(entry->d_name);
    if (!pid || *pid == own_pid_) continue;
    Known& known = known_[*pid];
    known.scan = scans_;
    if (known.inode == entry->d_ino) continue;
    known.inode = entry->d_ino;
    if (members_.contains(*pid)) continue;
    const Result<std::string> text = ReadFile(proc_directory_ + "/" + entry->d_name + "/stat");
    const auto stat = text ? ParseProcessStat(*text) : std::nullopt;
    if (stat && stat->alive()) candidates.push_back({*pid, stat->parent_pid});
  }
  std::erase_if(known_, [this](const auto& entry) { return entry.second.scan != scans_; });
  return candidates;
}

// Repeatedly moves into the tree each candidate that was claimed or whose parent is in the
// tree, until none is left to move.
void ProcessTree::Join(std::vector<Candidate>& candidates, std::vector<int64_t>& joined) {
  const auto belongs = [this](const Candidate& c) {
    return members_.contains(c.parent_pid) || claimed_.contains(c.pid);
  };
  for (bool more = true; more;) {
    const auto rest = std::stable_partition(candidates.begin(), candidates.end(), belongs);
    more = rest != candidates.begin();
    for (auto at = candidates.begin(); at != rest; ++at) {
      members_.insert(at->pid);
      joined.push_back(at->pid);
    }
    candidates.erase(candidates.begin(), rest);
  }
}

bool ProcessTree::IsMarked(int64_t pid) const {
  const Result<std::string> environment = ReadFile(proc_directory_ + "/" + std::to_string(pid) + "/environ");
  if (!environment) return false;  // another user's, so not ours
  const std::vector<std::string_view> variables = Split(*environment, '\0');
  return std::ranges::find(variables, mark_) != variables.end();
}

}  // namespace fullbore::probe
