// How full /dev/shm is: loader workers pass batches through it, and die of SIGBUS when it is full.
#pragma once

#include <string>

#include "measure/probe/probe.h"

namespace fullbore::probe {

class ShmProbe : public Probe {
 public:
  explicit ShmProbe(const Machine& machine);

  std::string_view name() const override { return "shm"; }
  Rate rate() const override { return Rate::kSlow; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  const std::string path_;
  const record::SeriesKey used_, total_;
};

}  // namespace fullbore::probe
