// The process to look into, and whether we may: what is missing is said before anything is tried.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace fullbore::stacks {

struct Target {
  int64_t pid = 0;
  std::string python;     // its interpreter, as a path in its own file system
  std::string directory;  // its working directory, likewise
  std::vector<std::string> command;
};

// Who asks. For tests; Ourselves() is this process.
struct Asker {
  uint32_t user = 0;
  bool may_trace_all = false;  // CAP_SYS_PTRACE
  static Asker Ourselves();
};

// `root` is "" on a real machine. Fails with kNotFound, kPermission or kUnsupported; the hint is the next step.
Result<Target> Examine(const std::string& root, int64_t pid, const Asker& asker);

// py-spy, where it is looked for: $PATH, beside the process's own Python, beside this program. One beside the process's
// Python that a user other than this one and root could have put there is never used (kPermission).
Result<std::string> FindPySpy(const Target& target);

}  // namespace fullbore::stacks
