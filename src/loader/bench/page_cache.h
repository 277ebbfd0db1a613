// Making local files cold: dropping them from the page cache, as far as the kernel lets us.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace fullbore::loader::bench {

// Asks the kernel to forget these files' pages and returns the share of their bytes that is still in memory:
// near 0 where it worked; near 1 on a file system that lives in memory, or right after the files were
// written. Looks at up to 64 files for that. Ends early when `stop` is set.
double DropFromPageCache(const std::vector<std::string>& files, const std::atomic<bool>& stop);

// All files of local paths: of a directory those below it,
// without following links. Empty where a path is remote.
std::vector<std::string> LocalFiles(const std::vector<std::string>& paths);

}  // namespace fullbore::loader::bench
