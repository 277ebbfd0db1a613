#include "measure/probe/process/thread_delay.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/fd.h"
#include "base/text.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

namespace {

constexpr size_t kMaxThreads = 4096;

// "10466 2309 7": ns on a core, ns ready without one, time slices. Nothing if the thread has ended.
std::optional<uint64_t> WaitedOf(int task_fd, const char* thread) {
  const std::string path = std::string(thread) + "/schedstat";
  const UniqueFd fd(openat(task_fd, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  char buffer[96];
  const ssize_t size = read(fd.get(), buffer, sizeof buffer);
  if (size <= 0) return std::nullopt;
  WordCursor words({buffer, static_cast<size_t>(size)});
  words.Skip(1);
  return words.NextCount();
}

}  // namespace

std::optional<double> ThreadDelay::Read(const std::string& process_directory, int64_t t_ns) {
  std::vector<Waited> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> task(opendir((process_directory + "/task").c_str()), closedir);
  while (const dirent* entry = task ? readdir(task.get()) : nullptr) {
    const std::optional<int64_t> thread = ParseInt(entry->d_name);
    if (!thread) continue;
    if (threads.size() == kMaxThreads) {
      threads.clear();
      break;
    }
    if (const auto waited = WaitedOf(dirfd(task.get()), entry->d_name))
      threads.emplace_back(*thread, *waited);
  }
  std::ranges::sort(threads);
  const bool was_known = std::exchange(known_, !threads.empty());
  const int64_t took_ns = t_ns - std::exchange(last_ns_, t_ns);
  const std::vector<Waited> before = std::exchange(threads_, std::move(threads));
  if (!was_known || !known_ || took_ns <= 0) return std::nullopt;
  uint64_t waited_ns = 0;
  auto earlier = before.begin();
  for (const auto& [thread, ns] : threads_) {
    while (earlier != before.end() && earlier->first < thread) ++earlier;
    const bool ran_before = earlier != before.end() && earlier->first == thread && earlier->second <= ns;
    waited_ns += ran_before ? ns - earlier->second : ns;
  }
  return static_cast<double>(waited_ns) / static_cast<double>(took_ns);
}

std::vector<int64_t> ThreadDelay::MostDelayed(size_t most) const {
  std::vector<Waited> threads = threads_;
  std::ranges::sort(threads, std::greater(), &Waited::second);
  threads.resize(std::min(most, threads.size()));
  std::vector<int64_t> numbers;
  for (const auto& [thread, ns] : threads) numbers.push_back(thread);
  return numbers;
}

}  // namespace fullbore::probe
