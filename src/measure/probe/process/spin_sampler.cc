#include "measure/probe/process/spin_sampler.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "measure/probe/text_file.h"

namespace fullbore::probe {

namespace {

constexpr uint64_t kSamplesPerSecond = 49;  // not in step with timers that tick 50 or 100 times a second
const auto kPageBytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
constexpr std::array kRuntimes = {"libgomp", "libiomp5", "libomp"};

std::optional<uint64_t> Hex(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool IsRuntime(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(kRuntimes, [&](std::string_view name) {
    // "libgomp.so.1", "libgomp-a34b3233.so.1"; not "libompi.so".
    return file.starts_with(name) && file.size() > name.size() &&
           (file[name.size()] == '.' || file[name.size()] == '-');
  });
}

}  // namespace

OpenMpCode::OpenMpCode(std::string_view maps) {
  LineCursor lines(maps);
  for (std::string_view line; lines.Next(line);) {
    // "7f12a000-7f12b000 r-xp 00004000 fe:01 1234   /usr/lib/libgomp.so.1"
    WordCursor words(line);
    const std::string_view range = words.Next(), access = words.Next();
    words.Skip(3);
    const size_t dash = range.find('-');
    if (dash == std::string_view::npos || access.size() < 3 || access[2] != 'x' || !IsRuntime(words.Next()))
      continue;
    const auto begin = Hex(range.substr(0, dash)), end = Hex(range.substr(dash + 1));
    if (begin && end) ranges_.emplace_back(*begin, *end);
  }
}

bool OpenMpCode::Contains(uint64_t address) const {
  return std::ranges::any_of(
      ranges_, [&](const auto& range) { return address >= range.first && address < range.second; });
}

std::unique_ptr<ThreadSampler> ThreadSampler::Start(int64_t thread) {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_TASK_CLOCK;
  wanted.freq = 1;
  wanted.sample_freq = kSamplesPerSecond;
  wanted.sample_type = PERF_SAMPLE_IP;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  UniqueFd fd(static_cast<int>(
      syscall(SYS_perf_event_open, &wanted, static_cast<pid_t>(thread), -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!fd.valid()) return nullptr;
  void* memory = mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<ThreadSampler>(new ThreadSampler(std::move(fd), memory));
}

ThreadSampler::~ThreadSampler() { munmap(memory_, 2 * kPageBytes); }

// The page after the header is a ring of records. The kernel moves data_head, we move data_tail.
std::vector<uint64_t> ThreadSampler::Take() {
  auto* header = static_cast<perf_event_mmap_page*>(memory_);
  const char* ring = static_cast<const char*>(memory_) + kPageBytes;
  const uint64_t head = std::atomic_ref(header->data_head).load(std::memory_order_acquire);
  uint64_t at = header->data_tail;
  const auto copy = [&](uint64_t from, void* to, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) static_cast<char*>(to)[i] = ring[(from + i) % kPageBytes];
  };
  std::vector<uint64_t> addresses;
  while (at + sizeof(perf_event_header) <= head) {
    perf_event_header record;
    copy(at, &record, sizeof record);
    if (record.size < sizeof record) break;
    if (record.type == PERF_RECORD_SAMPLE && record.size >= sizeof record + sizeof(uint64_t)) {
      uint64_t address = 0;
      copy(at + sizeof record, &address, sizeof address);
      addresses.push_back(address);
    }
    at += record.size;
  }
  std::atomic_ref(header->data_tail).store(head, std::memory_order_release);
  return addresses;
}

void SpinSampler::Start(int64_t pid, const std::string& process_directory,
                        const std::vector<int64_t>& threads) {
  if (refused_ || Samples(pid)) return;
  size_t sampled = 0;
  for (const auto& [other, process] : processes_) sampled += process.threads.size();
  const Result<std::string> maps = ReadFile(process_directory + "/maps");
  if (!maps) return;
  Sampled process{OpenMpCode(*maps), {}};
  for (const int64_t thread : threads) {
    if (process.threads.size() == kMaxThreadsOfProcess || sampled == kMaxThreads) break;
    std::unique_ptr<ThreadSampler> sampler = ThreadSampler::Start(thread);
    if (!sampler && errno == ESRCH) continue;  // it has ended
    if (!sampler) {
      refused_ = processes_.empty() && process.threads.empty();
      break;  // else there is no more room: those that are sampled stand for the others
    }
    process.threads.push_back(std::move(sampler));
    ++sampled;
  }
  if (!process.threads.empty()) processes_.emplace(pid, std::move(process));
}

SpinSamples SpinSampler::Take(int64_t pid) {
  SpinSamples samples;
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return samples;
  for (const auto& thread : process->second.threads) {
    for (const uint64_t address : thread->Take()) {
      ++samples.all;
      samples.in_runtime += process->second.code.Contains(address);
    }
  }
  return samples;
}

}  // namespace fullbore::probe
