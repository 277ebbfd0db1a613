// What the slow probe reads of one GPU. Part of nvml_probes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "measure/probe/counter.h"
#include "measure/probe/nvml/gpm_reader.h"
#include "measure/probe/nvml/nvml_probes.h"

namespace fullbore::probe::nvml {

class SlowProbe::Readings {
 public:
  Readings(Session& session, const Gpu& gpu, const std::function<bool(int64_t)>& is_ours);
  void Sample(int64_t t_ns, Gpu& gpu, Sink& sink);

 private:
  struct Quantity {
    record::SeriesKey key;
    Switch asked;
  };
  // One field of nvmlDeviceGetFieldValues; all fields are read in one call.
  struct Field {
    uint32_t id;
    uint32_t scope;
    Switch asked;
    std::optional<double> value;  // of this round; a counter of 64 bits stays exact below 2^53
  };
  void ReadMemory(int64_t t_ns, Gpu& gpu, Sink& sink);
  void ReadClocks(int64_t t_ns, Gpu& gpu, Sink& sink);
  void ReadHealth(int64_t t_ns, Gpu& gpu, Sink& sink);
  void ReadEnergy(int64_t t_ns, Gpu& gpu, Sink& sink);
  void ReadFields(int64_t t_ns, Gpu& gpu, Sink& sink);
  void ReadPower(int64_t t_ns, Gpu& gpu, Sink& sink);
  void ReadReasons(int64_t t_ns, Gpu& gpu, Sink& sink);
  void ReadThrottling(int64_t t_ns, Sink& sink);
  // The fraction of the time since the last round by which a nanosecond counter advanced.
  std::optional<double> RatioOf(uint32_t field, Counter& counter, int64_t t_ns);
  void ReadTraffic(int64_t t_ns, Sink& sink);
  void ReadProcesses(int64_t t_ns, Gpu& gpu, Sink& sink);
  void ReadProcessUtilization(int64_t t_ns, Gpu& gpu, Sink& sink);

  // Calls `function(device, ..., &value)` and records value * factor.
  template <typename T, typename Call>
  void ReadOne(Quantity& quantity, double factor, int64_t t_ns, Gpu& gpu, Sink& sink, Call call);
  Field* FieldOf(uint32_t id);                 // null where it is not asked for: an instance has few of them
  std::optional<double> ValueOf(uint32_t id);  // of this round

  Session& session_;
  const std::function<bool(int64_t)>& is_ours_;
  GpmReader gpm_;
  Quantity memory_used_, memory_total_, power_, power_limit_, energy_, sm_clock_, sm_clock_max_,
      memory_clock_, memory_clock_max_, temperature_, throttle_reasons_, ecc_corrected_, ecc_uncorrected_,
      remapped_rows_, process_count_, process_sm_;
  record::SeriesKey memory_of_command_, memory_of_others_, sm_of_command_, sm_of_others_, throttle_power_,
      throttle_thermal_, pcie_receive_, pcie_send_, nvlink_receive_, nvlink_send_;
  Switch memory_v2_;
  Switch fields_asked_;
  std::vector<Field> fields_;
  std::vector<FieldValue> values_;
  const std::optional<SlowdownFields> slowdown_;
  Counter power_cap_ns_, power_brake_ns_, soft_thermal_ns_, hard_thermal_ns_, thermal_ns_;
  std::optional<uint64_t> reasons_;  // of this round
  Counter pcie_received_, pcie_sent_, nvlink_received_, nvlink_sent_;
  std::optional<unsigned long long> first_energy_mj_;
  unsigned long long last_seen_us_ = 0;
  bool ours_seen_ = false;  // NVML's pids are those of this namespace
  std::vector<ProcessInfo> processes_;
  std::vector<ProcessUtilization> utilizations_;
};

}  // namespace fullbore::probe::nvml
