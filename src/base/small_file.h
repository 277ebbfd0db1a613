// Files that people name in options and that are read whole: rules, a token, a list. What is named may be anything: a
// device without an end, a FIFO that nobody writes into, a directory, or a file of many gigabytes.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace fullbore {

inline constexpr size_t kSmallFileBytes = 1 << 20;

// The whole regular file as text; an error that says what it is if it is something else, or longer than `most`. Follows
// links, and never waits.
Result<std::string> ReadSmallFile(const std::string& path, size_t most = kSmallFileBytes);

}  // namespace fullbore
