// One line of /proc/PID/stat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fullbore::probe {

struct ProcessStat {
  std::string_view name;  // the kernel's short name: 15 bytes, chosen by the process itself
  char state = '?';
  int64_t parent_pid = 0;
  uint64_t cpu_ticks = 0;  // user and system, all threads, without children
  int64_t threads = 0;
  uint64_t start_ticks = 0;  // since boot: tells a process from a later one with the same number
  uint64_t resident_pages = 0;

  bool alive() const { return state != 'Z' && state != 'X' && state != 'x'; }
};

// Nothing if the text is not such a line. The name points into the text.
std::optional<ProcessStat> ParseProcessStat(std::string_view text);

// The command line of a process, its words separated by blanks and its secrets masked, at most 200
// bytes; empty if it has none.
std::string ReadCommandLine(const std::string& process_directory);

}  // namespace fullbore::probe
