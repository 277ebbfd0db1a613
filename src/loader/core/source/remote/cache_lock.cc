#include "loader/core/source/remote/cache_lock.h"

#include <fcntl.h>

#include <cerrno>

#include "base/guarded_file.h"

namespace fullbore::loader::remote {
namespace {

// "Open file description" locks (Linux 3.15): unlike POSIX locks they hold between threads too, and closing
// another descriptor of the same file does not drop them.
int SetLock(int fd, int16_t type, uint64_t place) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(place);
  range.l_len = 1;
  return fcntl(fd, F_OFD_SETLK, &range);
}

}  // namespace

Result<std::optional<CacheLock>> CacheLock::Try(const std::string& path, uint64_t place) {
  auto fd = OpenOrCreateFile(path, kOrdinaryFile);
  if (!fd) return fd.error();
  if (SetLock(fd->get(), F_WRLCK, place) == 0) return std::optional(CacheLock(std::move(*fd), place));
  if (errno == EAGAIN || errno == EACCES) return std::optional<CacheLock>();
  return ErrnoError("cannot lock '" + path + "'", errno);
}

CacheLock::~CacheLock() {
  // Explicit rather than left to close(), because a forked child may hold a copy of the descriptor.
  if (fd_.valid()) SetLock(fd_.get(), F_UNLCK, place_);
}

}  // namespace fullbore::loader::remote
