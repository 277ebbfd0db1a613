#include "watch/helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "base/exec.h"
#include "base/fd.h"

namespace fullbore::watch {

namespace {

constexpr int kNice = 10;
// Of address space; a run that needs more is looked at when it has ended. A sanitizer reserves all there is.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr rlim_t kMostMemory = RLIM_INFINITY;
#else
constexpr rlim_t kMostMemory = 1 << 30;
#endif

// It gets a core when nobody else wants it, and where memory ends it is what ends, not the training.
void MakeHarmless(pid_t pid, HelperMemory memory) {
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(pid), kNice);
  const rlimit most = {kMostMemory, kMostMemory};
  if (memory == HelperMemory::kBounded) (void)prlimit(pid, RLIMIT_AS, &most, nullptr);
  const UniqueFd score(open(fmt::format("/proc/{}/oom_score_adj", pid).c_str(), O_WRONLY | O_CLOEXEC));
  if (score.valid()) (void)!write(score.get(), "1000", 4);
}

}  // namespace

pid_t StartHelper(std::vector<std::string> words, int output, bool own_session, HelperMemory memory) {
  SpawnOptions options;
  options.output = output;
  options.apart = own_session ? SpawnOptions::Apart::kSession : SpawnOptions::Apart::kNo;
  options.outlives_us = own_session;
  pid_t pid = -1;
  if (Spawn(std::move(words), options, pid) != 0) return -1;
  MakeHarmless(pid, memory);
  return pid;
}

}  // namespace fullbore::watch
