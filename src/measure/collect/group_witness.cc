#include "measure/collect/group_witness.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <new>
#include <string>

#include "base/fd.h"
#include "base/text.h"

namespace fullbore::collect {

namespace {

constexpr int kDeliveryMs = 20;  // the kernel signals the processes of a group one by one
// On a busy machine the witness may wait that long for a core, and longer.
constexpr int kPatienceMs = 5000;

void CloseAllFiles() {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 0U, ~0U, 0U) == 0) return;
#endif
  for (int fd = 0; fd < 1024; ++fd) close(fd);
}

}  // namespace

GroupWitness::GroupWitness() {
  void* shared = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return;
  counts_ = new (shared) Counts{};
  const pid_t parent = getpid();
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  pid_ = fork();
  if (pid_ == 0) Watch(*counts_, parent);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

GroupWitness::~GroupWitness() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (counts_) munmap(counts_, sizeof(Counts));
}

// Holds no file open, so that whoever waits for the end of our output does not wait for this process. Signals
// from the terminal (si_code above 0) are never asked for, and so not counted.
void GroupWitness::Watch(Counts& counts, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "fullbore-signal");
  CloseAllFiles();
  if (getppid() != parent) _exit(0);
  sigset_t all;
  sigfillset(&all);
  while (true) {
    siginfo_t info;
    const int signal = sigwaitinfo(&all, &info);
    if (signal > 0 && signal < kSignals && info.si_code <= 0) ++counts[static_cast<size_t>(signal)];
  }
}

// Waits until the witness has received and counted all its signals.
bool GroupWitness::IsIdle() const {
  const auto status = ReadFile("/proc/" + std::to_string(pid_) + "/status");
  if (!status) return true;  // it has ended: it counts nothing any more
  bool sleeps = false, none_pending = true;
  for (const std::string_view line : Split(*status, '\n')) {
    if (line.starts_with("State:")) sleeps = line.find('S', 6) != std::string_view::npos;
    if (line.starts_with("SigPnd:") || line.starts_with("ShdPnd:"))
      none_pending = none_pending && line.find_first_not_of("0 \t", 7) == std::string_view::npos;
  }
  return sleeps && none_pending;
}

bool GroupWitness::SawToo(int signal) {
  if (pid_ <= 0 || signal <= 0 || signal >= kSignals) return false;
  const auto at = static_cast<size_t>(signal);
  for (int waited_ms = 0; waited_ms <= kPatienceMs; ++waited_ms) {
    const bool counted_all = waited_ms >= kDeliveryMs && IsIdle();  // checked before the count is read
    const uint32_t count = (*counts_)[at];
    if (count != answered_[at]) {
      answered_[at] = count;
      return true;
    }
    if (counted_all) return false;
    const timespec a_moment = {0, 1'000'000};
    nanosleep(&a_moment, nullptr);
  }
  return false;
}

}  // namespace fullbore::collect
