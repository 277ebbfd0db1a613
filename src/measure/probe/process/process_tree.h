// Which processes belong to the command: itself, its children by parent links, and those that were reparented
// when their parent died but still carry FULLBORE_RUN=<mark> in their environment.
//
// A scan reads the names in /proc and then only what is new there; a stranger's environment is read once.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace fullbore::probe {

class ProcessTree {
 public:
  // With this process as the root, the tree is what descends from it.
  ProcessTree(std::string proc_directory, int64_t root_pid, const std::string& mark);

  // The pids of the processes that joined the tree since the previous scan.
  std::vector<int64_t> Scan();

  // The process said that it belongs to the command.
  void Claim(int64_t pid);
  // The process has ended: its pid may be reused by a stranger.
  void Forget(int64_t pid);

 private:
  struct CloseDirectory {
    void operator()(DIR* directory) const { closedir(directory); }
  };
  struct Known {
    uint64_t inode = 0;  // of /proc/PID: another one means another process under the same number
    uint64_t scan = 0;   // the last in which it was there
  };
  struct Candidate {
    int64_t pid = 0;
    int64_t parent_pid = 0;
  };

  std::vector<Candidate> NewProcesses();
  bool IsMarked(int64_t pid) const;
  void Join(std::vector<Candidate>& candidates, std::vector<int64_t>& joined);

  const std::string proc_directory_;
  const std::string mark_;  // "FULLBORE_RUN=<mark>", empty if there is none
  const int64_t own_pid_;
  std::unique_ptr<DIR, CloseDirectory> directory_;
  uint64_t scans_ = 0;
  std::unordered_map<int64_t, Known> known_;
  std::unordered_set<int64_t> members_;
  std::unordered_set<int64_t> claimed_;
};

}  // namespace fullbore::probe
