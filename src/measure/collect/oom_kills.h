// Distinguishes a process that the kernel killed for lack of memory from one that somebody killed.
//
// Counts the kills in the command's own control group, whichever it moved to; those of the whole machine
// only if there is no such counter or the command itself died of SIGKILL, so that a kill elsewhere on the
// machine is not blamed on the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace fullbore::collect {

class OomKills {
 public:
  OomKills(std::string root, int64_t command_pid);

  void Look();  // while the command lives: a group it has moved into counts from then on
  bool Happened(bool command_was_killed) const;

 private:
  std::string root_;
  int64_t command_pid_;
  std::optional<int64_t> machine_at_start_;
  std::map<std::string, int64_t> groups_at_start_;  // by the file that holds the counter
};

}  // namespace fullbore::collect
