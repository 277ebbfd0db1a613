#include "watch/onlooker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "base/exec.h"

namespace fullbore::watch {

namespace {

constexpr int64_t kPatienceNs = 60 * kNsPerSecond;  // a look that takes longer is given up
constexpr int kNice = 10;
constexpr rlim_t kMostMemory =
    1 << 30;  // address space; a run that needs more is looked at when it has ended
// A pause is so many times the time on a core that the last look took, and at least a quarter of the run's age: in a
// long run a verdict changes seldom.
constexpr int64_t kTimesALook = 50, kOfItsAge = 4;
constexpr int64_t kLongestPauseNs = 1800 * kNsPerSecond;

// File actions and attributes of posix_spawn, which must be destroyed.
class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // The recorder holds all signals; the look must end with Ctrl-C like everything else.
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
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

int64_t Ns(const timeval& time) { return time.tv_sec * kNsPerSecond + time.tv_usec * 1000; }

}  // namespace

Onlooker::Onlooker(std::string explainer, int64_t pause_ns)
    : explainer_(std::move(explainer)), pause_ns_(pause_ns) {}

Onlooker::~Onlooker() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<std::string> Onlooker::Tick(const std::string& run_file, int64_t now_ns) try {
  if (first_ns_ == 0) {
    first_ns_ = now_ns;
    next_ns_ = now_ns + pause_ns_;
  }
  if (pid_ > 0) return Finish(now_ns);
  if (now_ns >= next_ns_) Start(run_file, now_ns);
  return std::nullopt;
} catch (const std::exception&) {  // no memory: perhaps at the next look
  return std::nullopt;
}

void Onlooker::Start(const std::string& run_file, int64_t now_ns) {
  started_ns_ = now_ns;
  next_ns_ = now_ns + pause_ns_;
  said_.reset(memfd_create("fullbore-look", MFD_CLOEXEC));
  if (!said_.valid()) return;
  const SpawnSettings settings(said_.get());
  std::vector<std::string> words = {explainer_, "explain", "--json", "-", run_file};
  std::vector<std::string> environment = EnvironmentWith({});
  if (posix_spawn(&pid_, explainer_.c_str(), settings.files(), settings.attributes(), Pointers(words).data(),
                  Pointers(environment).data()) != 0) {
    pid_ = -1;
    return;
  }
  MakeHarmless(pid_);
}

std::optional<std::string> Onlooker::Finish(int64_t now_ns) {
  int status = 0;
  rusage used{};
  if (wait4(pid_, &status, WNOHANG, &used) != pid_) {
    if (now_ns - started_ns_ > kPatienceNs) kill(pid_, SIGKILL);
    return std::nullopt;
  }
  pid_ = -1;
  const int64_t pause_ns = std::max(
      {pause_ns_, kTimesALook * (Ns(used.ru_utime) + Ns(used.ru_stime)), (now_ns - first_ns_) / kOfItsAge});
  next_ns_ = now_ns + std::min(pause_ns, kLongestPauseNs);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || lseek(said_.get(), 0, SEEK_SET) != 0)
    return std::nullopt;
  const auto text = ReadToEnd(said_.get(), "what a look at the run found");
  if (!text) return std::nullopt;
  const auto report = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto verdict = VerdictOf(report);
  return verdict ? announcer_.Heard(*verdict) : std::nullopt;
}

}  // namespace fullbore::watch
