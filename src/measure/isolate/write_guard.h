// Landlock (Linux 5.19): a process, and all that it starts, writes below a few places only; elsewhere writing fails with
// "Permission denied". For commands in any language. It takes away the privileges of setuid programs, too.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"

namespace fullbore::isolate {

// The rules, to be entered in a child. A place is a directory, or a file that exists; what does not exist is left out.
// Empty where the kernel has no such Landlock: then nothing is guarded.
UniqueFd MakeWriteGuard(const std::vector<std::string>& places);

// For good. In a forked child: only async-signal-safe calls. False where the kernel refuses.
bool EnterWriteGuard(int guard);

}  // namespace fullbore::isolate
