#include "watch/helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/exec.h"
#include "base/fd.h"

namespace fullbore::watch {

namespace {

constexpr int kNice = 10;
constexpr rlim_t kMostMemory =
    1 << 30;  // address space; a run that needs more is looked at when it has ended

// File actions and attributes of posix_spawn, which must be destroyed.
class SpawnSettings {
 public:
  SpawnSettings(int output, bool own_session) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // The recorder holds all signals; a helper must end with Ctrl-C like everything else.
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(
        &attributes_, static_cast<short>(POSIX_SPAWN_SETSIGMASK | (own_session ? POSIX_SPAWN_SETSID : 0)));
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

// It gets a core when nobody else wants it, and where memory ends it is what ends, not the training.
void MakeHarmless(pid_t pid) {
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(pid), kNice);
  const rlimit memory = {kMostMemory, kMostMemory};
  (void)prlimit(pid, RLIMIT_AS, &memory, nullptr);
  const UniqueFd score(open(fmt::format("/proc/{}/oom_score_adj", pid).c_str(), O_WRONLY | O_CLOEXEC));
  if (score.valid()) (void)!write(score.get(), "1000", 4);
}

}  // namespace

pid_t StartHelper(std::vector<std::string> words, int output, bool own_session) {
  const SpawnSettings settings(output, own_session);
  std::vector<std::string> environment = EnvironmentWith({});
  const std::string program = words.front();
  pid_t pid = -1;
  if (posix_spawn(&pid, program.c_str(), settings.files(), settings.attributes(), Pointers(words).data(),
                  Pointers(environment).data()) != 0)
    return -1;
  MakeHarmless(pid);
  return pid;
}

}  // namespace fullbore::watch
