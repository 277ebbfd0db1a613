// libnvidia-ml.so.1, opened at run time. A function that this version of the library lacks returns
// kFunctionNotFound, as NVML itself would.
//
// Only one thread may call it: parallel GPM calls crash the library.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "measure/probe/nvml/nvml_abi.h"

namespace fullbore::probe::nvml {

template <typename... Arguments>
class Function {
 public:
  Return operator()(Arguments... arguments) const { return call_ ? call_(arguments...) : kFunctionNotFound; }
  explicit operator bool() const { return call_ != nullptr; }
  void Set(void* symbol) { call_ = reinterpret_cast<Return (*)(Arguments...)>(symbol); }

 private:
  Return (*call_)(Arguments...) = nullptr;
};

class Library {
 public:
  // The library named by $FULLBORE_NVML, else the system's. kNotFound if there is none:
  // without a GPU this is normal.
  static Result<std::unique_ptr<Library>> Open();
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  Function<> init;
  Function<> shutdown;
  Function<char*, uint32_t> driver_version;
  Function<int*> cuda_driver_version;  // 12040 is 12.4
  Function<uint32_t*> device_count;
  Function<uint32_t, Device*> device_by_index;
  Function<Device, char*, uint32_t> name;
  Function<Device, char*, uint32_t> uuid;
  Function<Device, uint32_t*, uint32_t*> mig_mode;  // current, pending
  Function<Device, uint32_t*> max_mig_devices;
  Function<Device, uint32_t, Device*> mig_device_by_index;
  Function<Device, uint32_t*> gpu_instance_id;
  Function<Device, uint32_t*> minor_number;  // N of /dev/nvidiaN

  Function<Device, Utilization*> utilization;
  Function<Device, Memory*> memory;
  Function<Device, MemoryV2*> memory_v2;
  Function<Device, uint32_t*> power_mw;
  Function<Device, uint32_t*> power_limit_mw;
  Function<Device, unsigned long long*> energy_mj;
  Function<Device, uint32_t, uint32_t*> clock_mhz;      // clock, value
  Function<Device, uint32_t, uint32_t*> max_clock_mhz;  // clock, value
  Function<Device, uint32_t, uint32_t*> temperature;
  Function<Device, unsigned long long*> throttle_reasons;
  Function<Device, uint32_t, uint32_t, unsigned long long*> ecc_errors;  // corrected or not, volatile or not
  Function<Device, uint32_t*, uint32_t*, uint32_t*, uint32_t*> remapped_rows;
  Function<Device, uint32_t*, ProcessInfo*> compute_processes, graphics_processes, mps_processes;
  Function<Device, ProcessUtilization*, uint32_t*, unsigned long long> process_utilization;
  Function<Device, int, FieldValue*> field_values;

  Function<EventSet*> event_set_create;
  Function<EventSet> event_set_free;
  Function<Device, unsigned long long, EventSet> register_events;
  Function<EventSet, EventData*, uint32_t> event_wait;

  Function<Device, GpmSupport*> gpm_support;
  Function<GpmSample*> gpm_sample_alloc;
  Function<GpmSample> gpm_sample_free;
  Function<Device, GpmSample> gpm_sample_get;
  Function<Device, uint32_t, GpmSample> gpm_mig_sample_get;
  Function<GpmMetricsGet*> gpm_metrics_get;

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void FindFunctions();

  void* handle_;
};

}  // namespace fullbore::probe::nvml
