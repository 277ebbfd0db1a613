// How long the threads of a process waited for a core while they were ready to run: the second figure of
// /proc/PID/task/TID/schedstat, added up. (/proc/PID/schedstat has only that of the main thread.)
//
// Cost: about 2.5 us per thread and reading, and 16 bytes per thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fullbore::probe {

class ThreadDelay {
 public:
  // Thread-seconds of waiting per second since the previous reading, of the threads that run now. One that
  // began since then counts from its beginning; what one waited before it ended is lost. Nothing at the first
  // reading, where the kernel does not count (CONFIG_SCHED_INFO), and of a process with more than 4096
  // threads.
  std::optional<double> Read(const std::string& process_directory, int64_t t_ns);

  // Those threads that have waited longest so far, of the previous reading.
  std::vector<int64_t> MostDelayed(size_t most) const;

  // The process took no CPU time since the previous reading: no thread ran, or waited for long. What comes
  // after `t_ns` is not spread over the time before it.
  void Rest(int64_t t_ns) { last_ns_ = t_ns; }

 private:
  using Waited = std::pair<int64_t, uint64_t>;  // thread, ns since it began

  std::vector<Waited> threads_;  // by thread
  int64_t last_ns_ = 0;
  bool known_ = false;
};

}  // namespace fullbore::probe
