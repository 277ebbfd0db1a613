#include "base/fd.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

namespace fullbore {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

void CloseOnExec(int first) {
  if (close_range(static_cast<unsigned>(first), ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  std::error_code failed;  // before Linux 5.11
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", failed)) {
    const int fd = std::stoi(entry.path().filename().string());
    if (fd >= first) (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

Result<std::string> ReadFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError("cannot open '" + path + "'", errno);
  return ReadToEnd(fd.get(), path);
}

namespace {

// Far above what any file in /proc, and any that we write, holds: whatever has been put in its place has an end here.
constexpr size_t kMostBytes = size_t{256} << 20;

}  // namespace

Result<std::string> ReadToEnd(int fd, const std::string& path) {
  std::string text;
  char buffer[16 * 1024];
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n == 0) return text;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError("cannot read '" + path + "'", errno);
    if (text.size() + static_cast<size_t>(n) > kMostBytes)
      return Error{ErrorCode::kUnsupported, "cannot read '" + path + "': it is longer than 256 MiB", ""};
    text.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace fullbore
