#include "watch/onlooker.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "watch/helper.h"

namespace fullbore::watch {

namespace {

constexpr int64_t kPatienceNs = 60 * kNsPerSecond;  // a look that takes longer is given up
// A pause is so many times the time on a core that the last look took, and at least a quarter of the run's age: in a
// long run a verdict changes seldom.
constexpr int64_t kTimesALook = 50, kOfItsAge = 4;
constexpr int64_t kLongestPauseNs = 1800 * kNsPerSecond;

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
  pid_ = StartHelper({explainer_, "explain", "--json", "-", run_file}, said_.get(), /*own_session=*/false);
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
