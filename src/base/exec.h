// Starting other programs: their argument and environment arrays, made from strings, and a way that leaks neither our
// files nor our signal mask into them, and leaves none of them behind.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace fullbore {

// This process's environment with `added` in front of it, each entry "NAME=value".
std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& added);

// Ends with a null pointer. Points into `texts`, which must outlive it.
std::vector<char*> Pointers(std::vector<std::string>& texts);

struct SpawnOptions {
  int input = -1, output = -1, errors = -1;  // descriptors of ours; -1: /dev/null
  enum class Apart { kNo, kGroup, kSession };
  Apart apart = Apart::kGroup;  // in a group or session of its own, Ctrl-C is ours to pass on
  bool usual_signals = false;   // also those that we ignore
  bool outlives_us = false;     // else SIGKILL ends it with the thread that started it, however that ends
  std::map<std::string, std::string> environment;  // added to ours
};

// Starts `words[0]`, which is looked for in PATH unless it holds a slash. No signal is held back from it. What it starts
// itself is its own affair. Returns 0, or the error number; then `pid` is -1.
int Spawn(std::vector<std::string> words, const SpawnOptions& options, pid_t& pid);

}  // namespace fullbore
