// All processes of this node by what they belong to: which jobs, pods and containers are here, whose they are, and
// which devices they were given.
//
// A scan reads the names in /proc and what is new there. A process may be moved to another group after it was made, so
// a young one is read again each time, and the others in turns within a minute. Of command lines only slurmstepd's
// title is read, of environments only which devices are visible (allocation.h); neither is kept.
//
// Owned and called by one thread.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "agent/allocation.h"
#include "agent/holder.h"

namespace fullbore::agent {

using NameOfUser = std::function<std::string(uint32_t uid)>;  // "1000" where it has no name

struct Process {
  Membership in;
  std::optional<uint32_t> uid;  // who runs it
  bool outlived = false;        // the step of its job has ended, or its group is gone
};

struct Group {             // of the processes of one job, pod or container
  std::string user;        // who runs them; empty where none was seen but the scheduler's own
  std::string job_number;  // where the group has the job's SLUID, and its slurmstepd said so
  int64_t processes = 0;
  Allocation allocation;
  int environments = 0;  // that were looked at for it
};

struct Pod {
  std::string name, namespace_name;
};

// What this process may read of others'. Nothing where there was nobody to try it with.
struct Sight {
  std::optional<bool> processes;     // all of them, rather than its own user's (hidepid) or its container's
  std::optional<bool> environments;  // which devices jobs were given
};

class Processes {
 public:
  Processes(std::string root, NameOfUser name_of_user);
  ~Processes();

  void Scan(int64_t now_ns);

  // Nothing where there is no such process, or none that we may see.
  std::optional<Process> Find(int64_t pid);
  const std::map<Holder, Group>& groups() const { return groups_; }
  std::string UserOf(uint32_t uid) const { return name_of_user_(uid); }
  Pod PodOf(const std::string& uid) const;  // empty where the kubelet keeps no logs here
  const Sight& sight() const { return sight_; }

 private:
  struct Known {
    uint64_t inode = 0;  // of /proc/PID: another one means another process under the same number
    uint64_t scan = 0;   // the last in which it was there
    int64_t first_ns = 0;
    std::optional<Membership> in;  // nothing where it could not be read
    std::optional<uint32_t> uid;   // once it was asked for
  };
  using Step = std::pair<std::string, std::string>;  // job, step

  bool IsDue(const Known& known, int64_t pid, int64_t now_ns) const;
  void Read(int64_t pid, Known& known);
  void Count();
  void Learn(Group& group, int64_t pid, const Membership& in, const std::string& cgroup_text);
  void LearnUser(Group& group, int64_t pid, const Membership& in);
  void LearnAllocation(Group& group, int64_t pid, const Membership& in, const std::string& cgroup_text);
  void ReadPods();
  std::string DirectoryOf(int64_t pid) const;

  const std::string root_;
  const NameOfUser name_of_user_;
  std::unique_ptr<DIR, int (*)(DIR*)> proc_;
  uint64_t scans_ = 0;
  std::unordered_map<int64_t, Known> known_;
  std::map<Holder, Group> groups_;
  std::set<Step> led_;  // steps whose slurmstepd is here
  std::map<std::string, Pod> pods_;
  Sight sight_;
};

// Of /etc/passwd and whatever else the machine asks; remembered for an hour.
NameOfUser UserNames();

}  // namespace fullbore::agent
