#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/exec.h"
#include "base/fd.h"
#include "watch/notify/delivery.h"

namespace fullbore::watch {

namespace {

constexpr int64_t kLimitNs = 30 * kNsPerSecond;
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

// Text as a file that can be read once, from its beginning.
UniqueFd Readable(const std::string& text) {
  UniqueFd file(memfd_create("fullbore-alert", MFD_CLOEXEC));
  size_t done = 0;
  while (file.valid() && done < text.size()) {
    const ssize_t wrote = write(file.get(), text.data() + done, text.size() - done);
    if (wrote <= 0) return UniqueFd();
    done += static_cast<size_t>(wrote);
  }
  if (file.valid()) (void)lseek(file.get(), 0, SEEK_SET);
  return file;
}

}  // namespace

Attempt RunCommand(const std::string& program, const std::string& json,
                   const std::map<std::string, std::string>& variables, CommandMark& mark,
                   const std::atomic<bool>& stop) {
  const UniqueFd input = Readable(json);
  pid_t pid = -1;
  if (!input.valid()) return {Attempt::End::kFailed, "no memory"};
  SpawnOptions options;
  options.input = input.get();
  options.usual_signals = true;
  options.environment = variables;
  const std::string marked = mark.Next();
  options.environment[CommandMark::kVariable] = marked;
  if (const int error = Spawn({program}, options, pid); error != 0)
    return {Attempt::End::kFailed, fmt::format("it cannot be started: {}", std::strerror(error))};
  int64_t deadline_ns = MonotonicNs() + kLimitNs;
  bool told = false;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (stop && !std::exchange(told, true)) deadline_ns = std::min(deadline_ns, MonotonicNs() + kLeaveNs);
    if (MonotonicNs() < deadline_ns) {
      std::this_thread::sleep_for(kBetweenLooks);
      continue;
    }
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    mark.End(marked);
    return {Attempt::End::kFailed, "it took longer than 30 s and was killed"};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {Attempt::End::kDelivered, ""};
  return {Attempt::End::kFailed, WIFEXITED(status)
                                     ? fmt::format("it ended with status {}", WEXITSTATUS(status))
                                     : fmt::format("it was killed by signal {}", WTERMSIG(status))};
}

}  // namespace fullbore::watch
