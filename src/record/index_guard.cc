#include "record/index_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "base/fd.h"

namespace fullbore::record {

namespace {

std::atomic<uint64_t> lost{0};
struct sigaction earlier {};
constinit thread_local int guards = 0;
std::atomic<bool> sent{false};  // one that somebody sent

// All below runs in a signal handler: system calls only.

struct Mapping {
  uintptr_t begin = 0, end = 0;
  uint64_t inode = 0;
};

// A line of /proc/PID/maps: "begin-end rights offset device inode   path".
Mapping Parse(std::string_view line, bool& is_index) {
  Mapping found;
  const char* const last = line.data() + line.size();
  const auto begin = std::from_chars(line.data(), last, found.begin, 16);
  if (begin.ptr == last) return {};
  std::from_chars(begin.ptr + 1, last, found.end, 16);
  size_t at = 0;
  for (int field = 0; field < 4 && at != std::string_view::npos; ++field) at = line.find(' ', at + 1);
  if (at == std::string_view::npos) return {};
  std::from_chars(line.data() + at + 1, last, found.inode);
  constexpr std::string_view kDeleted = " (deleted)";
  if (line.ends_with(kDeleted)) line.remove_suffix(kDeleted.size());
  is_index = line.ends_with("-shm");
  return found;
}

// The mappings of indexes. The files of a run have a few; more than fit are left alone.
class Indexes {
 public:
  Indexes() {
    const UniqueFd maps(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
    size_t held = 0;
    for (ssize_t n; (n = read(maps.get(), text_.data() + held, text_.size() - held)) > 0;) {
      held = TakeLines(held + static_cast<size_t>(n));
      if (held == text_.size()) held = 0;  // no path is that long
    }
  }
  const Mapping* begin() const { return found_.data(); }
  const Mapping* end() const { return found_.data() + count_; }

 private:
  // Returns the length of the incomplete line that is left at the front.
  size_t TakeLines(size_t size) {
    std::string_view rest(text_.data(), size);
    for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
      bool is_index = false;
      const Mapping mapping = Parse(rest.substr(0, end), is_index);
      if (is_index && count_ < found_.size()) found_[count_++] = mapping;
    }
    const size_t left = rest.size();
    for (size_t i = 0; i < left; ++i) text_[i] = rest[i];
    return left;
  }

  std::array<char, 8192> text_;
  std::array<Mapping, 64> found_;
  size_t count_ = 0;
};

// By way of /proc/self/mem, where a page that cannot be read is an error, and no second signal: it stays 0.
bool MakePrivate(const Mapping& mapping, int memory) {
  constexpr size_t kPage = 4096;
  const size_t size = mapping.end - mapping.begin;
  void* copy = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  for (size_t at = 0; at < size; at += kPage)
    (void)!pread(memory, static_cast<char*>(copy) + at, kPage, static_cast<off_t>(mapping.begin + at));
  void* place = reinterpret_cast<void*>(mapping.begin);
  return mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place;
}

// All parts of the index, so that what others see of it stays as it was, and whole.
bool LoseIndexAt(uintptr_t address) {
  const Indexes indexes;
  const Mapping* hit = nullptr;
  for (const Mapping& mapping : indexes)
    if (mapping.begin <= address && address < mapping.end) hit = &mapping;
  if (hit == nullptr) return false;
  const UniqueFd memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  bool all = true;
  for (const Mapping& mapping : indexes)
    if (mapping.inode == hit->inode) all = MakePrivate(mapping, memory.get()) && all;
  return all;
}

void OnBusError(int, siginfo_t* info, void*) {
  if (info->si_code <= 0 && guards > 0) return sent.store(true);
  const int error_before = errno;
  if (info->si_code <= 0) {
    sigaction(SIGBUS, &earlier, nullptr);
    raise(SIGBUS);
  } else if (LoseIndexAt(reinterpret_cast<uintptr_t>(info->si_addr))) {
    lost.fetch_add(1, std::memory_order_relaxed);
  } else {
    sigaction(SIGBUS, &earlier, nullptr);  // the access is tried again
  }
  errno = error_before;
}

}  // namespace

IndexGuard::IndexGuard(bool wanted) : wanted_(wanted) {
  if (!wanted_) return;
  [[maybe_unused]] static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &earlier) == 0;
  }();
  ++guards;
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &faults, &before_);
}

IndexGuard::~IndexGuard() {
  if (!wanted_) return;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  if (--guards == 0 && sent.exchange(false)) kill(getpid(), SIGBUS);
}

uint64_t LostIndexes() { return lost.load(std::memory_order_relaxed); }

}  // namespace fullbore::record
