#include "cli/companion.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "cli/subcommand.h"

namespace fullbore::cli {

namespace {

// Before it is started again: where memory ends, it is the first that has to go.
constexpr int64_t kFirstPauseNs = 10 * kNsPerSecond, kLongestPauseNs = 600 * kNsPerSecond;

}  // namespace

std::vector<std::string> Companion::Tick(const std::string& run_file) try {
  std::vector<std::string> lines = Lines();
  if (is_done_ || output_.valid() || MonotonicNs() < next_start_ns_) return lines;
  if (pid_ > 0 && !WasEnded()) {
    is_done_ = true;
    return lines;
  }
  if (next_start_ns_ != 0) lines.push_back(task_.who + " has ended, and is started again");
  Start(run_file, lines);
  return lines;
} catch (const std::exception&) {  // no memory: the lines are in the history, too
  return {};
}

// Rather than that it has nothing left to do, or cannot do what was asked for.
bool Companion::WasEnded() {
  int status = 0;
  if (waitpid(std::exchange(pid_, -1), &status, 0) <= 0) return true;
  return WIFSIGNALED(status) || WEXITSTATUS(status) == kExitFailure;
}

void Companion::Start(const std::string& run_file, std::vector<std::string>& lines) {
  pause_ns_ = std::clamp(2 * pause_ns_, kFirstPauseNs, kLongestPauseNs);
  next_start_ns_ = MonotonicNs() + pause_ns_;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return lines.push_back(task_.who + " is missing: no pipe can be made");
  output_.reset(ends[0]);
  const UniqueFd input(ends[1]);
  (void)fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  // A session of its own: it has to say how the run ended, and Ctrl-C is one way to end it.
  std::vector<std::string> words = {"/proc/self/exe"};
  words.insert(words.end(), task_.words.begin(), task_.words.end());
  words.push_back(run_file);
  pid_ = watch::StartHelper(std::move(words), input.get(), /*own_session=*/true, task_.memory);
  if (pid_ > 0) return;
  output_.reset();
  lines.push_back(task_.who + " is missing: no process can be started");
}

std::vector<std::string> Companion::Lines() {
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

std::vector<std::string> Companion::Finish(int64_t deadline_ns) {
  std::vector<std::string> lines;
  while (output_.valid() && pid_ > 0) {
    pollfd ready = {output_.get(), POLLIN, 0};
    const int64_t left_ms = (deadline_ns - MonotonicNs()) / kNsPerMs;
    if (left_ms <= 0) break;
    poll(&ready, 1, static_cast<int>(left_ms));
    std::ranges::move(Lines(), std::back_inserter(lines));
  }
  if (pid_ > 0 && output_.valid()) lines.push_back(task_.lasting);
  if (pid_ > 0 && !output_.valid() && WasEnded())
    lines.push_back(fmt::format("{} has ended before it was done: {}", task_.who, task_.lost));
  return lines;
}

}  // namespace fullbore::cli
