#include "base/captured.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>

#include "base/clock.h"
#include "base/exec.h"
#include "base/fd.h"

namespace fullbore {

namespace {

constexpr int64_t kBetweenLooksNs = 5 * kNsPerMs;

std::string Contents(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  return text;
}

bool Fill(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return lseek(fd, 0, SEEK_SET) == 0;
}

// The status that waitpid gave; nothing if the program had to be killed.
std::optional<int> WaitFor(pid_t pid, int64_t limit_ns) {
  const int64_t until_ns = MonotonicNs() + limit_ns;
  for (int status = 0;;) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (MonotonicNs() > until_ns) {
      kill(-pid, SIGKILL);
      waitpid(pid, &status, 0);
      return std::nullopt;
    }
    const timespec pause = {0, kBetweenLooksNs};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

Result<Captured> RunAndCapture(std::vector<std::string> words, int64_t limit_ns, std::string_view input) {
  const UniqueFd reads(memfd_create("fullbore-input", MFD_CLOEXEC));
  const UniqueFd output(memfd_create("fullbore-output", MFD_CLOEXEC));
  const UniqueFd errors(memfd_create("fullbore-errors", MFD_CLOEXEC));
  if (!reads.valid() || !output.valid() || !errors.valid() || !Fill(reads.get(), input)) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("cannot keep the input and output of '{}': {}", words[0], std::strerror(errno)),
                 "the system is short of memory or of file descriptors"};
  }
  SpawnOptions options;
  options.input = reads.get();
  options.output = output.get();
  options.errors = errors.get();
  pid_t pid = -1;
  const int failed = Spawn(words, options, pid);
  if (failed != 0) {
    return Error{failed == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
                 fmt::format("cannot start '{}': {}", words[0], std::strerror(failed)),
                 "is it installed, and in PATH?"};
  }
  const auto status = WaitFor(pid, limit_ns);
  if (!status) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("'{}' gave no answer within {} s", words[0], limit_ns / kNsPerSecond),
                 "try the same command by hand"};
  }
  return Captured{WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status),
                  Contents(output.get()), Contents(errors.get())};
}

}  // namespace fullbore
