// A process that runs already, and its descendants: who they are and what they took of the cores meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace fullbore::stacks {

// On a core, at the first look and at the last.
struct Ticks {
  uint64_t first = 0, last = 0;
};

struct Member {
  int64_t parent = 0;
  int rank = -1;                       // $RANK of its environment
  std::optional<int64_t> omp_threads;  // $OMP_NUM_THREADS
  std::string role = "other";          // "trainer", "loader"; a guess until its stacks have told it
  Ticks ticks;
  std::map<int64_t, Ticks> threads;  // of those that may train
};

class Family {
 public:
  Family(std::string proc, int64_t pid) : proc_(std::move(proc)), root_(pid) {}

  void Look();  // once a second: some 20 us a process of the machine, and a thread of a trainer
  void SetRole(int64_t pid, const std::string& role);
  const std::map<int64_t, Member>& members() const { return members_; }
  int64_t CpuNsOf(int64_t pid) const;
  // How many of its threads computed about as much as the busiest: its pool. 0 where none did.
  int64_t PoolOf(int64_t pid) const;
  // Whether it holds a GPU's device file open: without one, item() and .to() wait for nothing.
  bool UsesDevice(int64_t pid) const;
  // The rank's process above a loader worker, or itself.
  int64_t TrainerOf(int64_t pid) const;

 private:
  void Admit(int64_t pid, int64_t parent);

  std::string proc_;
  int64_t root_;
  std::map<int64_t, Member> members_;
};

}  // namespace fullbore::stacks
