#include "watch/notify/command_mark.h"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"

namespace fullbore::watch {

namespace {

constexpr int kMostPasses = 20;  // over processes that start others while they are killed
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

// The processes whose environment has an entry that begins so.
std::vector<pid_t> Carriers(const std::string& entry) {
  std::vector<pid_t> carriers;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), &closedir);
  for (const dirent* each = nullptr; proc && (each = readdir(proc.get())) != nullptr;) {
    const auto pid = ParseInt(each->d_name);
    if (!pid || *pid == getpid()) continue;
    const auto environment = ReadFile(fmt::format("/proc/{}/environ", *pid));  // only of our own processes
    if (environment && ('\0' + *environment).find('\0' + entry) != std::string::npos)
      carriers.push_back(static_cast<pid_t>(*pid));
  }
  return carriers;
}

void Kill(const std::string& entry) {
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const std::vector<pid_t> carriers = Carriers(entry);
    if (carriers.empty()) return;
    for (const pid_t pid : carriers) (void)kill(pid, SIGKILL);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

std::string EntryOf(const std::string& value) { return fmt::format("{}={}", CommandMark::kVariable, value); }

}  // namespace

CommandMark::CommandMark() {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
    random = static_cast<uint64_t>(MonotonicNs());
  prefix_ = fmt::format("{}-{:016x}-", getpid(), random);
}

std::string CommandMark::Next() { return fmt::format("{}{}", prefix_, ++count_); }

void CommandMark::End(const std::string& value) const { Kill(EntryOf(value) + '\0'); }

void CommandMark::EndAll(int64_t patience_ns) const {
  if (count_ == 0) return;
  const int64_t deadline_ns = MonotonicNs() + patience_ns;
  while (MonotonicNs() < deadline_ns && !Carriers(EntryOf(prefix_)).empty())
    std::this_thread::sleep_for(kBetweenLooks);
  Kill(EntryOf(prefix_));
}

}  // namespace fullbore::watch
