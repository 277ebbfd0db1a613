// What part of the CPU time of a process its threads spend inside the OpenMP runtime: there they wait for the
// others of their pool, and spin. The kernel samples where the threads are (perf events, user mode only) and
// leaves the addresses in memory that is shared with us; which of them are the runtime's, /proc/PID/maps says.
//
// Allowed for one's own processes where kernel.perf_event_paranoid is 2 or less (its default; Debian and
// Ubuntu raise it), and not in most containers. Owned and called by the recorder thread.
//
// Cost: 49 samples per second of a sampled thread's CPU time, about 2 us each for that thread; a file
// descriptor and 8 kB per thread, of at most 16 threads of a process and 64 in all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace fullbore::probe {

// The code of OpenMP runtimes (libgomp, libiomp5, libomp) in the text of /proc/PID/maps: [begin, end).
class OpenMpCode {
 public:
  explicit OpenMpCode(std::string_view maps);
  bool Contains(uint64_t address) const;

 private:
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

struct SpinSamples {
  int64_t all = 0;
  int64_t in_runtime = 0;
};

// Where one thread is, 49 times per second of its CPU time.
class ThreadSampler {
 public:
  ~ThreadSampler();
  // Null if the kernel refuses; errno says why.
  static std::unique_ptr<ThreadSampler> Start(int64_t thread);

  // The addresses since the last call. If more came than there is room for, the later ones are missing.
  std::vector<uint64_t> Take();

 private:
  ThreadSampler(UniqueFd fd, void* memory) : fd_(std::move(fd)), memory_(memory) {}
  UniqueFd fd_;
  void* memory_;
};

class SpinSampler {
 public:
  static constexpr size_t kMaxThreadsOfProcess = 16;
  static constexpr size_t kMaxThreads = 64;

  bool Samples(int64_t pid) const { return processes_.contains(pid); }
  // Does nothing once the kernel has refused.
  void Start(int64_t pid, const std::string& process_directory, const std::vector<int64_t>& threads);
  void Stop(int64_t pid) { processes_.erase(pid); }
  bool refused() const { return refused_; }

  SpinSamples Take(int64_t pid);

 private:
  struct Sampled {
    OpenMpCode code;
    std::vector<std::unique_ptr<ThreadSampler>> threads;
  };
  std::map<int64_t, Sampled> processes_;
  bool refused_ = false;
};

}  // namespace fullbore::probe
