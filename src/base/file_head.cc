#include "base/file_head.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace fullbore {

Result<std::string> ReadHead(int fd, const std::string& path, size_t most) {
  std::string head(most, '\0');
  size_t filled = 0;
  while (filled < most) {
    const ssize_t got = read(fd, head.data() + filled, most - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError("cannot read '" + path + "'", errno);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  head.resize(filled);
  return head;
}

Result<std::string> ReadHead(const std::string& path, size_t most) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError("cannot open '" + path + "'", errno);
  return ReadHead(fd.get(), path, most);
}

}  // namespace fullbore
