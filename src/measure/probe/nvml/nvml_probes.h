// NVIDIA GPUs. The fast probe reads how busy they are, the slow one everything that changes slowly or costs
// more to read: memory, power, clocks, throttling, errors, processes, traffic. Both share one session;
// without NVML both stay silent.
//
// GPM may be missing (before Hopper): then PCIe and NVLink traffic comes from counters, and how much of the
// chip is busy is not recorded.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "measure/probe/counter.h"
#include "measure/probe/nvml/gpm_reader.h"
#include "measure/probe/nvml/nvml_session.h"
#include "measure/probe/probe.h"

namespace fullbore::probe::nvml {

class FastProbe : public Probe {
 public:
  explicit FastProbe(std::shared_ptr<Session> session) : session_(std::move(session)) {}

  std::string_view name() const override { return "nvml"; }
  Rate rate() const override { return Rate::kFast; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  struct Readings {
    std::unique_ptr<GpmReader> gpm;
    Switch utilization;
    record::SeriesKey gpu_key, memory_key;
  };

  std::shared_ptr<Session> session_;
  std::vector<Readings> readings_;  // as session_->gpus()
};

class SlowProbe : public Probe {
 public:
  // `is_ours`: whether a process belongs to the recorded command.
  SlowProbe(std::shared_ptr<Session> session, std::function<bool(int64_t pid)> is_ours);
  ~SlowProbe() override;

  std::string_view name() const override { return "nvml-slow"; }
  Rate rate() const override { return Rate::kSlow; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  class Readings;

  void WatchXids();
  void ReadXids(int64_t t_ns, Sink& sink);

  std::shared_ptr<Session> session_;
  std::function<bool(int64_t)> is_ours_;
  std::vector<std::unique_ptr<Readings>> readings_;  // as session_->gpus()
  EventSet events_ = nullptr;
};

}  // namespace fullbore::probe::nvml
