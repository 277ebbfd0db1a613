// Tells a process that the kernel killed for memory from one that somebody killed.
//
// The counters are those of the command's own control group, wherever it went; only where there are none, or
// where the command itself died of SIGKILL, the whole machine's counts: there another's misfortune would
// otherwise be called ours.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace fullbore::collect {

class OomKills {
 public:
  OomKills(std::string root, int64_t command_pid);

  void Look();  // while the command lives: a group that it moved into counts from then on
  bool Happened(bool command_was_killed) const;

 private:
  std::string root_;
  int64_t command_pid_;
  std::optional<int64_t> machine_at_start_;
  std::map<std::string, int64_t> groups_at_start_;  // by the file that counts
};

}  // namespace fullbore::collect
