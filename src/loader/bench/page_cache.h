// Makes local files cold: drops them from the page cache, as far as the kernel allows.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace fullbore::loader::bench {

// Asks the kernel to forget these files' pages and returns the share of their bytes that is still in memory:
// near 0 if it worked; near 1 on a file system in memory, or right after the files were written. Checks up to
// 64 files for that. Ends early when `stop` is set.
double DropFromPageCache(const std::vector<std::string>& files, const std::atomic<bool>& stop);

// All files of local paths: for a directory those below it,
// without following links. Empty if a path is remote.
std::vector<std::string> LocalFiles(const std::vector<std::string>& paths);

}  // namespace fullbore::loader::bench
