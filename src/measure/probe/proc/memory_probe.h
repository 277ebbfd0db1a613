// Host memory from /proc/meminfo; swapping, major faults and out-of-memory kills from /proc/vmstat.
#pragma once

#include "measure/probe/counter.h"
#include "measure/probe/probe.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

class MemoryProbe : public Probe {
 public:
  explicit MemoryProbe(const Machine& machine);

  std::string_view name() const override { return "memory"; }
  Rate rate() const override { return Rate::kSlow; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  void ReadMeminfo(int64_t t_ns, Sink& sink);
  void ReadVmstat(int64_t t_ns, Sink& sink);

  TextFile meminfo_;
  TextFile vmstat_;
  Counter swap_in_pages_, swap_out_pages_, major_faults_count_;
  std::optional<uint64_t> first_oom_kills_;
  const record::SeriesKey total_, used_, available_, swap_used_, swap_in_, swap_out_, major_faults_,
      oom_kills_;
};

}  // namespace fullbore::probe
