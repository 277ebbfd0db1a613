// A process that runs already, and its descendants: who they are and what they took of the cores meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fullbore::stacks {

struct Member {
  int64_t parent = 0;
  int rank = -1;                             // $RANK of its environment
  std::string role = "other";                // "trainer", "loader"; of what may train until the stacks say so
  uint64_t first_ticks = 0, last_ticks = 0;  // on a core, between the first look and the last
};

class Family {
 public:
  Family(std::string proc, int64_t pid) : proc_(std::move(proc)), root_(pid) {}

  void Look();  // once a second: some 20 us a process of the machine
  const std::map<int64_t, Member>& members() const { return members_; }
  int64_t CpuNsOf(int64_t pid) const;
  // The rank's process above a loader worker, or itself.
  int64_t TrainerOf(int64_t pid) const;

 private:
  void Admit(int64_t pid, int64_t parent);

  std::string proc_;
  int64_t root_;
  std::map<int64_t, Member> members_;
};

}  // namespace fullbore::stacks
