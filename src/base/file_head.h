// The beginning of a file of which nobody says how long it is: what another process claims of itself in /proc, or a file
// that has to be shorter than a limit.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace fullbore {

// At most `most` bytes from where `fd` stands; `path` is for the error message.
Result<std::string> ReadHead(int fd, const std::string& path, size_t most);
Result<std::string> ReadHead(const std::string& path, size_t most);

}  // namespace fullbore
