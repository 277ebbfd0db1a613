// How full /dev/shm is: loader workers pass batches through it, and die of SIGBUS, or of an error, when it is full.
//
// The /dev/shm of the command's own mount namespace, where a worker of its loader is known (/proc/PID/root); ours until
// one was seen, and none while there is none afterwards: it may be another.
// Batches come and go: it is looked at five times a second, and the most of a second is what is recorded. When it is
// nearly full beside workers, that is said once.
//
// Cost: a statvfs of a file system in memory, about 2 us.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "measure/probe/probe.h"

namespace fullbore::probe {

class ShmProbe : public Probe {
 public:
  // `a_worker` gives the process of some loader worker that runs, 0 if there is none.
  explicit ShmProbe(const Machine& machine, std::function<int64_t()> a_worker = nullptr);

  std::string_view name() const override { return "shm"; }
  Rate rate() const override { return Rate::kFast; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  std::string PathFor(int64_t worker) const;
  void Warn(double used, double total, Sink& sink);

  const std::string root_;
  const std::function<int64_t()> a_worker_;
  const record::SeriesKey used_, total_;
  int64_t emitted_ns_ = 0;
  double emitted_ = 0;  // the last reading of what is in use
  double most_ = 0;     // since then
  bool saw_worker_ = false;
  bool said_ = false;
};

}  // namespace fullbore::probe
