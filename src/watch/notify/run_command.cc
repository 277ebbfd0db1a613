#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>
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

int Spawn(pid_t* pid, const std::string& program, int input,
          const std::map<std::string, std::string>& variables) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, usual;
  sigemptyset(&none);
  sigfillset(&usual);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = {program};
  std::vector<std::string> environment = EnvironmentWith(variables);
  const int error = posix_spawn(pid, program.c_str(), &files, &attributes, Pointers(words).data(),
                                Pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

Attempt RunCommand(const std::string& program, const std::string& json,
                   const std::map<std::string, std::string>& variables, const std::atomic<bool>& stop) {
  const UniqueFd input = Readable(json);
  pid_t pid = 0;
  if (!input.valid()) return {Attempt::End::kFailed, "no memory"};
  if (const int error = Spawn(&pid, program, input.get(), variables); error != 0)
    return {Attempt::End::kFailed, fmt::format("it cannot be started: {}", std::strerror(error))};
  const int64_t deadline_ns = MonotonicNs() + kLimitNs;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (MonotonicNs() < deadline_ns && !stop) {
      std::this_thread::sleep_for(kBetweenLooks);
      continue;
    }
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return {Attempt::End::kFailed, "it took longer than 30 s and was killed"};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {Attempt::End::kDelivered, ""};
  return {Attempt::End::kFailed, WIFEXITED(status)
                                     ? fmt::format("it ended with status {}", WEXITSTATUS(status))
                                     : fmt::format("signal {} ended it", WTERMSIG(status))};
}

}  // namespace fullbore::watch
