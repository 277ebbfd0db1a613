// The limits, usage and stalls of the command's control group: inside a container, these and not the
// machine's are the denominators.
#pragma once

#include <optional>
#include <string>

#include "measure/probe/cgroup/cgroup.h"
#include "measure/probe/counter.h"
#include "measure/probe/probe.h"
#include "measure/probe/proc/pressure_probe.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

class CgroupProbe : public Probe {
 public:
  explicit CgroupProbe(const Machine& machine);

  std::string_view name() const override { return "cgroup"; }
  Rate rate() const override { return Rate::kSlow; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  // The files of one group, reopened when the command moves to another.
  struct Files {
    Cgroup cgroup;
    std::optional<TextFile> cpu_stat, memory_used, memory_stat, oom;
    bool memory_is_v1 = false;
    std::optional<PressureFiles> pressure;
    Counter periods, throttled_periods;
    std::optional<uint64_t> first_oom_kills;
  };

  void Follow();
  bool CommandIsAlive();
  void OpenFiles(const std::string& cgroup_text);
  void ReadLimits(int64_t t_ns, Sink& sink);
  void ReadThrottling(int64_t t_ns, Sink& sink);
  void ReadMemory(int64_t t_ns, Sink& sink);
  void ReadOomKills(int64_t t_ns, Sink& sink);

  const std::string root_;
  TextFile command_cgroup_;
  TextFile command_stat_;
  TextFile own_cgroup_;
  std::optional<uint64_t> command_start_ticks_;
  std::string cgroup_text_;
  Files files_;
  const record::SeriesKey cpu_limit_, cpu_throttled_, memory_limit_, memory_used_, memory_cache_, oom_kills_;
};

}  // namespace fullbore::probe
