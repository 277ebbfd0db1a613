#include "base/exec.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

extern char** environ;

namespace fullbore {

std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& added) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : added) entries.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.count(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

namespace {

// File actions and attributes of posix_spawn, which must be destroyed.
class SpawnSettings {
 public:
  explicit SpawnSettings(const SpawnOptions& options) {
    posix_spawn_file_actions_init(&files_);
    Give(options.input, STDIN_FILENO, O_RDONLY);
    Give(options.output, STDOUT_FILENO, O_WRONLY);
    Give(options.errors, STDERR_FILENO, O_WRONLY);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    int flags = POSIX_SPAWN_SETSIGMASK;
    if (options.usual_signals) flags |= POSIX_SPAWN_SETSIGDEF;
    if (options.apart == SpawnOptions::Apart::kGroup) flags |= POSIX_SPAWN_SETPGROUP;
    if (options.apart == SpawnOptions::Apart::kSession) flags |= POSIX_SPAWN_SETSID;
    posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
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
  void Give(int ours, int theirs, int mode) {
    if (ours >= 0) {
      posix_spawn_file_actions_adddup2(&files_, ours, theirs);
    } else {
      posix_spawn_file_actions_addopen(&files_, theirs, "/dev/null", mode, 0);
    }
  }

  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

}  // namespace

int Spawn(std::vector<std::string> words, const SpawnOptions& options, pid_t& pid) {
  const SpawnSettings settings(options);
  const std::string program = words.front();
  std::vector<std::string> environment = EnvironmentWith(options.environment);
  const int error = posix_spawnp(&pid, program.c_str(), settings.files(), settings.attributes(),
                                 Pointers(words).data(), Pointers(environment).data());
  if (error != 0) pid = -1;
  return error;
}

}  // namespace fullbore
