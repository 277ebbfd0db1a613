#include "cli/run_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "watch/helper.h"

namespace fullbore::cli {

namespace {

constexpr int64_t kPatienceNs = 5 * kNsPerSecond;
// Before it is started again: where memory ends, it is the first that has to go.
constexpr int64_t kFirstPauseNs = 10 * kNsPerSecond, kLongestPauseNs = 600 * kNsPerSecond;

}  // namespace

std::vector<std::string> RunWatch::Tick(const std::string& run_file) try {
  if (rules_.empty()) return {};
  std::vector<std::string> lines = Lines();
  if (output_.valid() || MonotonicNs() < next_start_ns_) return lines;
  if (pid_ > 0 && waitpid(std::exchange(pid_, -1), nullptr, 0) > 0)
    lines.push_back("who kept watch over this run has ended, and is started again");
  Start(run_file, lines);
  return lines;
} catch (const std::exception&) {  // no memory: the lines are in the history, too
  return {};
}

void RunWatch::Start(const std::string& run_file, std::vector<std::string>& lines) {
  pause_ns_ = std::clamp(2 * pause_ns_, kFirstPauseNs, kLongestPauseNs);
  next_start_ns_ = MonotonicNs() + pause_ns_;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return lines.push_back("nobody keeps watch: no pipe can be made");
  output_.reset(ends[0]);
  const UniqueFd input(ends[1]);
  (void)fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  // A session of its own: it has to say how the run ended, and Ctrl-C is one way to end it.
  pid_ = watch::StartHelper({"/proc/self/exe", "alerts", "watch", "--rules", rules_, run_file}, input.get(),
                            /*own_session=*/true);
  if (pid_ > 0) return;
  output_.reset();
  lines.push_back("nobody keeps watch: no process can be started");
}

std::vector<std::string> RunWatch::Lines() {
  char bytes[4096];
  ssize_t got = 0;
  while (output_.valid() && (got = read(output_.get(), bytes, sizeof bytes)) > 0)
    partial_.append(bytes, static_cast<size_t>(got));
  if (got == 0) output_.reset();
  std::vector<std::string> lines;
  for (size_t end = 0; (end = partial_.find('\n')) != std::string::npos; partial_.erase(0, end + 1))
    lines.push_back(partial_.substr(0, end));
  return lines;
}

std::vector<std::string> RunWatch::Finish() {
  std::vector<std::string> lines;
  const int64_t deadline_ns = MonotonicNs() + kPatienceNs;
  while (output_.valid() && pid_ > 0) {
    pollfd ready = {output_.get(), POLLIN, 0};
    const int64_t left_ms = (deadline_ns - MonotonicNs()) / kNsPerMs;
    if (left_ms <= 0) break;
    poll(&ready, 1, static_cast<int>(left_ms));
    std::ranges::move(Lines(), std::back_inserter(lines));
  }
  if (pid_ > 0 && output_.valid())
    lines.push_back("an alert is still being delivered, which goes on in the background");
  if (pid_ > 0 && !output_.valid()) waitpid(pid_, nullptr, 0);
  return lines;
}

}  // namespace fullbore::cli
